#include "gate/time_shift.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "gate/statistics.hpp"

namespace rooflash {
namespace {

using ByRound = std::map<int, double>;

struct Shift {
  double ratio = 1;
  std::optional<Interval> ci95;
  OptDouble p;
};

OptDouble median_time(const Row& row) {
  return row.time_us ? OptDouble(row.time_us->median) : std::nullopt;
}

ByRound by_round(const Rows& rows, OptDouble (*value)(const Row& row)) {
  std::map<int, std::vector<double>> values;
  for (const Row* row : rows) {
    if (const OptDouble one = value(*row)) values[row->round].push_back(*one);
  }
  ByRound rounds;
  for (const auto& [round, of_devices] : values) rounds[round] = median(of_devices);
  return rounds;
}

std::vector<double> values_of(const ByRound& rounds) {
  std::vector<double> values;
  for (const auto& [round, value] : rounds) values.push_back(value);
  return values;
}

std::vector<double> logarithms(const ByRound& rounds) {
  std::vector<double> logs;
  for (const auto& [round, value] : rounds) logs.push_back(std::log(value));
  return logs;
}

std::vector<double> paired_differences(const ByRound& base, const ByRound& candidate) {
  std::vector<double> differences;
  for (const auto& [round, value] : base) {
    const auto other = candidate.find(round);
    if (other != candidate.end()) differences.push_back(std::log(other->second / value));
  }
  return differences;
}

std::optional<Interval> ratios(const std::optional<Interval>& logs) {
  if (!logs) return std::nullopt;
  return Interval{std::exp(logs->low), std::exp(logs->high)};
}

double ratio_of_medians(const ByRound& base, const ByRound& candidate) {
  return median(values_of(candidate)) / median(values_of(base));
}

Shift paired_shift(const ByRound& base, const ByRound& candidate) {
  const std::vector<double> differences = paired_differences(base, candidate);
  if (differences.size() < kLeastPairs) return {ratio_of_medians(base, candidate), {}, {}};
  return {std::exp(hodges_lehmann(differences)), ratios(signed_rank_ci95(differences)),
          signed_rank_p(differences)};
}

Shift unpaired_shift(const ByRound& base, const ByRound& candidate) {
  if (base.size() < kLeastBaseRounds || candidate.size() < kLeastNewRounds) {
    return {ratio_of_medians(base, candidate), {}, {}};
  }
  const std::vector<double> a = logarithms(base);
  const std::vector<double> b = logarithms(candidate);
  return {std::exp(hodges_lehmann(a, b)), ratios(rank_sum_ci95(a, b)), rank_sum_p(a, b)};
}

Shift shift_between(const ByRound& base, const ByRound& candidate, bool exact, bool paired) {
  if (!exact) return paired ? paired_shift(base, candidate) : unpaired_shift(base, candidate);
  const double ratio = ratio_of_medians(base, candidate);
  return {ratio, Interval{ratio, ratio}, {}};
}

Direction direction_of(const Shift& shift, double threshold) {
  if (!shift.ci95) return Direction::unsure;
  const double high = 1 + threshold;
  const double low = 1 / high;
  if (shift.ci95->low > 1 && shift.ratio >= high) return Direction::slower;
  if (shift.ci95->high < 1 && shift.ratio <= low) return Direction::faster;
  if (shift.ci95->low > low && shift.ci95->high < high) return Direction::same;
  return Direction::unsure;
}

std::string too_few_rounds(const ByRound& base, const ByRound& candidate, bool paired) {
  if (paired) {
    return fmt::format("needs {} pairs of rounds, has {}", kLeastPairs,
                       paired_differences(base, candidate).size());
  }
  return fmt::format("needs {} + {} rounds, has {} + {}", kLeastBaseRounds, kLeastNewRounds,
                     base.size(), candidate.size());
}

// Only arithmetic runs at the SM clock; a row that waits for HBM does not, whatever its cycles say.
// Unknown roofs: attention is compute-bound.
bool is_compute_bound(const Record& record, const Row& row) {
  for (const Ceilings& ceilings : record.ceilings) {
    if (ceilings.device != row.device || !ceilings.hbm_copy_gbps) continue;
    const auto tflops = ceilings.gemm_tflops.find(std::string(to_string(row.problem.dtype)));
    if (tflops == ceilings.gemm_tflops.end()) continue;
    const double bytes = row.counters.hbm_read_bytes && row.counters.hbm_write_bytes
                             ? *row.counters.hbm_read_bytes + *row.counters.hbm_write_bytes
                             : static_cast<double>(row.model.compulsory_bytes);
    return row.model.flops / (tflops->second * 1e3) >= bytes / *ceilings.hbm_copy_gbps;
  }
  return true;
}

bool has_flag(const Rows& rows, std::string_view flag) {
  return std::any_of(rows.begin(), rows.end(), [&](const Row* row) {
    return std::find(row->flags.begin(), row->flags.end(), flag) != row->flags.end();
  });
}

// A change that the clock explains, or that another process may have caused, is not the kernel's.
void confirm(TimeShift& time, const Record& record, const Match& match, bool paired) {
  const auto doubt = [&](std::string reason) {
    time.direction = Direction::unsure;
    time.reason = std::move(reason);
  };
  if (has_flag(match.base, "shared_gpu") || has_flag(match.candidate, "shared_gpu")) {
    return doubt("another process used the GPU");
  }
  const auto cycles = [](const Row& row) { return row.cycles_median; };
  const ByRound base = by_round(match.base, cycles);
  const ByRound candidate = by_round(match.candidate, cycles);
  if (base.size() != time.base_us.size() || candidate.size() != time.candidate_us.size() ||
      !is_compute_bound(record, *match.base.front())) {
    return;
  }
  const Shift shift = shift_between(base, candidate, false, paired);
  time.cycles_ratio = shift.ratio;
  if (direction_of(shift, time.threshold) == Direction::same) {
    doubt(fmt::format("clock: {} in cycles", percent_change(shift.ratio)));
  }
}

}  // namespace

std::optional<TimeShift> time_shift(const Record& base, const Match& match,
                                    const TimeRules& rules) {
  const ByRound before = by_round(match.base, median_time);
  const ByRound after = by_round(match.candidate, median_time);
  if (before.empty() || after.empty()) return std::nullopt;
  const bool exact = match.base.front()->simulated;
  const Shift shift = shift_between(before, after, exact, rules.paired);
  TimeShift time;
  time.base_us = values_of(before);
  time.candidate_us = values_of(after);
  time.base_median_us = median(time.base_us);
  time.candidate_median_us = median(time.candidate_us);
  time.ratio = shift.ratio;
  time.ci95 = shift.ci95;
  time.p = shift.p;
  time.threshold =
      rules.threshold.value_or(exact || rules.paired ? kPairedThreshold : kUnpairedThreshold);
  if (!exact) time.threshold = std::max(time.threshold, rules.floor_us / time.base_median_us);
  time.direction = direction_of(shift, time.threshold);
  if (!time.ci95) {
    time.reason = too_few_rounds(before, after, rules.paired);
  } else if (time.direction == Direction::unsure) {
    time.reason = "more rounds would tell";
  } else if (time.direction != Direction::same && !exact) {
    confirm(time, base, match, rules.paired);
  }
  return time;
}

std::string percent_change(double ratio) {
  const double percent = (ratio - 1) * 100;
  return fmt::format("{:+.1f}%", std::fabs(percent) < 0.05 ? 0.0 : percent);
}

}  // namespace rooflash
