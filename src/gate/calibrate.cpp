#include "gate/calibrate.hpp"

#include <algorithm>
#include <cmath>

namespace rooflash {
namespace {

// The estimate of n rounds has a standard error of about kEfficiency * noise / sqrt(n), and 1.96 +
// 1.28 of those lie between no change and one that is significant at 5 % in 9 of 10 gates.
constexpr double kEfficiency = 1.023;  // of Hodges-Lehmann against the mean, on normal noise
constexpr double kDetection = 1.96 + 1.28;

double deviation(const std::vector<double>& values) {
  double mean = 0;
  for (const double value : values) mean += value / static_cast<double>(values.size());
  double sum = 0;
  for (const double value : values) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(values.size() - 1));
}

double detectable(double noise, int rounds) {
  return std::expm1(kDetection * kEfficiency * noise / std::sqrt(static_cast<double>(rounds)));
}

OptDouble threshold_for(const CaseNoise& found, const Shift& shift) {
  for (const double threshold : kThresholds) {
    const Direction direction = direction_of(shift, threshold);
    if (direction == Direction::slower || direction == Direction::faster) continue;
    if (found.detectable_few <= threshold) return threshold;
  }
  return std::nullopt;
}

}  // namespace

std::vector<CaseNoise> calibrate(const Comparison& same) {
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
    found.detectable_few = detectable(found.noise, kScreenRounds);
    found.detectable_many = detectable(found.noise, kScreenRounds + kConfirmRounds);
    found.shift = time.shift.ratio;
    found.threshold = threshold_for(found, time.shift);
    cases.push_back(std::move(found));
  }
  return cases;
}

}  // namespace rooflash
