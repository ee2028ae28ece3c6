#include "gate/time_shift.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"

namespace rooflash {
namespace {

using RowValue = OptDouble (*)(const Row& row);

ByRound by_round(const Rows& rows, RowValue value) {
  std::map<int, std::vector<double>> values;
  for (const Row* row : rows) {
    if (const OptDouble one = value(*row)) values[row->round].push_back(*one);
  }
  ByRound rounds;
  for (const auto& [round, of_devices] : values) rounds[round] = median(of_devices);
  return rounds;
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

// The cycles of both sides, where every round has them.
void add_cycles(TimeShift& time, const Match& match) {
  const auto cycles = [](const Row& row) { return row.cycles_median; };
  ByRound base = by_round(match.base, cycles);
  ByRound candidate = by_round(match.candidate, cycles);
  if (base.size() != time.base_us.size() || candidate.size() != time.candidate_us.size()) return;
  time.base_cycles = std::move(base);
  time.candidate_cycles = std::move(candidate);
}

void confirm(TimeShift& time) {
  std::optional<Shift> cycles;
  if (time.compute_bound && !time.base_cycles.empty()) {
    cycles = shift_between(time.base_cycles, time.candidate_cycles, time.pairing);
    time.cycles_ratio = cycles->ratio;
  }
  time.reason = doubt_of_change(time.shared_gpu, cycles, time.threshold);
  if (!time.reason.empty()) time.direction = Direction::unsure;
}

// The times of both sides and how far they are apart; empty where a side has none.
std::optional<TimeShift> shift_of(const Match& match, const TimeRules& rules, RowValue value) {
  TimeShift time;
  time.base_us = by_round(match.base, value);
  time.candidate_us = by_round(match.candidate, value);
  if (time.base_us.empty() || time.candidate_us.empty()) return std::nullopt;
  const bool exact = match.base.front()->simulated;
  time.pairing = exact ? Pairing::exact : rules.paired ? Pairing::paired : Pairing::unpaired;
  time.base_median_us = median(values_of(time.base_us));
  time.candidate_median_us = median(values_of(time.candidate_us));
  time.shift = shift_between(time.base_us, time.candidate_us, time.pairing);
  time.relative = rules.threshold.value_or(time.pairing == Pairing::unpaired ? kUnpairedThreshold
                                                                             : kPairedThreshold);
  time.threshold =
      exact ? time.relative : std::max(time.relative, rules.floor_us / time.base_median_us);
  time.shared_gpu = has_flag(match.base, "shared_gpu") || has_flag(match.candidate, "shared_gpu");
  return time;
}

void judge(TimeShift& time) {
  time.direction = direction_of(time.shift, time.threshold);
  if (!time.shift.ci95) {
    time.reason = too_few_rounds(time.base_us, time.candidate_us, time.pairing);
  } else if (time.direction == Direction::unsure) {
    time.reason = "more rounds would tell";
  } else if (time.direction != Direction::same && time.pairing != Pairing::exact) {
    confirm(time);
  }
}

std::optional<TimeShift> shift_without_cycles(const Match& match, const TimeRules& rules,
                                              RowValue value) {
  std::optional<TimeShift> time = shift_of(match, rules, value);
  if (!time) return time;
  time->compute_bound = false;
  judge(*time);
  return time;
}

}  // namespace

std::optional<TimeShift> time_shift(const Record& base, const Match& match,
                                    const TimeRules& rules) {
  std::optional<TimeShift> time = shift_of(match, rules, [](const Row& row) {
    return row.time_us ? OptDouble(row.time_us->median) : std::nullopt;
  });
  if (!time) return time;
  time->compute_bound = is_compute_bound(base, *match.base.front());
  add_cycles(*time, match);
  judge(*time);
  return time;
}

std::optional<TimeShift> quantize_shift(const Match& match, const TimeRules& rules) {
  return shift_without_cycles(match, rules, [](const Row& row) {
    return row.quantize_us ? OptDouble(row.quantize_us->median) : std::nullopt;
  });
}

std::optional<TimeShift> with_quantize_shift(const Match& match, const TimeRules& rules) {
  return shift_without_cycles(match, rules,
                              [](const Row& row) { return row.time_with_quantize_us; });
}

Verdict verdict_of(Direction direction) {
  switch (direction) {
    case Direction::slower:
      return Verdict::slower;
    case Direction::faster:
      return Verdict::faster;
    case Direction::same:
      return Verdict::same;
    case Direction::unsure:
      break;
  }
  return Verdict::unsure;
}

Ruling ruling_of(const TimeShift& time) {
  return {verdict_of(time.direction), time.reason};
}

std::string change_text(const TimeShift& time) {
  return fmt::format("{} to {}, {}", format_time_us(time.base_median_us),
                     format_time_us(time.candidate_median_us), percent_change(time.shift.ratio));
}

std::string doubt_of_change(bool shared_gpu, const std::optional<Shift>& cycles, double threshold) {
  if (shared_gpu) return "another process used the GPU";
  if (cycles && direction_of(*cycles, threshold) == Direction::same) {
    return fmt::format("clock: {} in cycles", percent_change(cycles->ratio));
  }
  return {};
}

}  // namespace rooflash
