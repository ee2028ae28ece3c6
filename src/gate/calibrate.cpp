#include "gate/calibrate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "gate/verdict.hpp"

namespace rooflash {
namespace {

constexpr double kEfficiency = 1.023;  // of Hodges-Lehmann against the mean, on normal noise

// The quantile of Student's t where that of the normal distribution is `z`: the series of Cornish
// and Fisher, within 0.3 % from 4 degrees of freedom on.
double student(double z, double freedom) {
  const double z2 = z * z;
  return z * (1 + (z2 + 1) / (4 * freedom) + ((5 * z2 + 16) * z2 + 3) / (96 * freedom * freedom) +
              (((3 * z2 + 19) * z2 + 17) * z2 - 15) / (384 * freedom * freedom * freedom));
}

// The change between no change and one that is significant at 5 % in 9 of 10 comparisons. The
// standard error of the estimate is estimated too, hence Student's quantiles.
double detectable(double standard_error, double freedom) {
  constexpr double kTwoSided5 = 1.95996;
  constexpr double kNineOfTen = 1.28155;
  return std::expm1((student(kTwoSided5, freedom) + student(kNineOfTen, freedom)) * kEfficiency *
                    standard_error);
}

double deviation(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double detectable_in_pairs(double noise, std::size_t pairs) {
  const auto n = static_cast<double>(pairs);
  return detectable(noise / std::sqrt(n), n - 1);
}

std::vector<double> logarithms(const ByRound& rounds) {
  std::vector<double> logs;
  for (const double value : values_of(rounds)) logs.push_back(std::log(value));
  return logs;
}

// Of the rounds' medians: what they show, or what their own intervals say where that is more.
double noise_of(const std::vector<const Row*>& rounds) {
  constexpr double kIntervalWidth = 2 * 1.96;  // in standard errors
  std::vector<double> logs;
  std::vector<double> errors;
  for (const Row* row : rounds) {
    logs.push_back(std::log(row->time_us->median));
    errors.push_back(std::log(row->time_us->ci95_high / row->time_us->ci95_low) / kIntervalWidth);
  }
  return std::max(deviation(logs), median(errors));
}

DetectableChange detectable_among(const std::vector<const Row*>& rounds) {
  if (rounds.front()->simulated) return {{}, "simulated: its time has no noise"};
  if (rounds.size() < kLeastBaseRounds) {
    return {{},
            fmt::format("needs {} rounds, has {} (run --rounds {})", kLeastBaseRounds,
                        rounds.size(), kLeastBaseRounds)};
  }
  const auto n = static_cast<double>(rounds.size());
  return {detectable(noise_of(rounds) * std::sqrt(2 / n), 2 * n - 2), {}};
}

OptDouble threshold_for(const CaseNoise& found, const Shift& shift, double most) {
  std::vector<double> thresholds;
  for (const double threshold : kThresholds) {
    if (threshold < most) thresholds.push_back(threshold);
  }
  thresholds.push_back(most);
  for (const double threshold : thresholds) {
    const Direction direction = direction_of(shift, threshold);
    if (direction == Direction::slower || direction == Direction::faster) continue;
    if (found.detectable_few <= threshold) return threshold;
  }
  return std::nullopt;
}

}  // namespace

std::vector<CaseNoise> calibrate(const Comparison& same, double most) {
  std::vector<CaseNoise> cases;
  for (const CaseComparison& one : same.cases) {
    if (!one.time || !one.time->shift.ci95 || one.time->pairing == Pairing::unpaired) continue;
    const TimeShift& time = *one.time;
    const std::vector<double> differences = paired_differences(time.base_us, time.candidate_us);
    CaseNoise found;
    found.case_id = one.case_id;
    found.device_class = one.device_class;
    found.pairs = differences.size();
    found.noise = time.pairing == Pairing::exact ? 0 : deviation(differences);
    found.detectable_few = detectable_in_pairs(found.noise, kScreenRounds);
    found.detectable_many = detectable_in_pairs(found.noise, kScreenRounds + kConfirmRounds);
    found.shift = time.shift.ratio;
    found.threshold = threshold_for(found, time.shift, most);
    cases.push_back(std::move(found));
  }
  return cases;
}

DetectableChange detectable_change(const TimeShift& time) {
  if (!time.shift.ci95) return {{}, time.reason};
  if (time.pairing == Pairing::exact) return {{}, "exact: the time has no noise"};
  if (time.pairing == Pairing::paired) {
    const std::vector<double> differences = paired_differences(time.base_us, time.candidate_us);
    return {detectable_in_pairs(deviation(differences), differences.size()), {}};
  }
  const auto squared_error = [](const ByRound& rounds) {
    const double noise = deviation(logarithms(rounds));
    return noise * noise / static_cast<double>(rounds.size());
  };
  const std::size_t rounds = time.base_us.size() + time.candidate_us.size();
  return {detectable(std::sqrt(squared_error(time.base_us) + squared_error(time.candidate_us)),
                     static_cast<double>(rounds) - 2),
          {}};
}

std::vector<DetectableChange> detectable_changes(const Record& record) {
  std::map<std::pair<std::string, std::string>, std::vector<const Row*>> cases;
  std::vector<std::string> unfit;
  for (const Row& row : record.rows) {
    unfit.push_back(row.time_us ? unfit_reason(row) : "no time");
    if (unfit.back().empty()) cases[{row.device, row.case_id}].push_back(&row);
  }
  std::vector<DetectableChange> changes;
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    const Row& row = record.rows[i];
    changes.push_back(unfit[i].empty() ? detectable_among(cases.at({row.device, row.case_id}))
                                       : DetectableChange{{}, unfit[i]});
  }
  return changes;
}

}  // namespace rooflash
