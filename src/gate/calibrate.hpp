// The noise floor of a comparison of something with itself, and the thresholds that it allows.
#pragma once

#include <string>
#include <vector>

#include "gate/compare.hpp"
#include "gate/time_shift.hpp"

namespace rooflash {

struct CaseNoise {
  std::string case_id;
  std::string device_class;
  std::size_t pairs = 0;
  double noise = 0;           // standard deviation of the log ratio of a pair of rounds
  double detectable_few = 0;  // change found in 9 of 10 gates of few rounds, and of many
  double detectable_many = 0;
  double shift = 1;     // ratio found, where there is none
  OptDouble threshold;  // the least that suits this noise; empty: too noisy to gate
};

// The rounds of a screening, and those of it and the confirmation together.
inline constexpr int kScreenRounds = 7;
inline constexpr int kConfirmRounds = 12;

// The thresholds that are proposed.
inline constexpr double kThresholds[] = {0.02, 0.03, 0.05, 0.08, 0.12};
inline constexpr double kMostProposed = 0.12;

// Of each case whose rounds were paired, or that has no noise. Cases with fewer pairs than a gate
// needs are left out. No threshold above `most` is proposed.
std::vector<CaseNoise> calibrate(const Comparison& same, double most = kMostProposed);

// The least change in time that 9 of 10 comparisons find, relative: exp((t_0.975 + t_0.9) e s) - 1,
// where s is the standard error of the mean logarithm of the ratio, t are Student's quantiles and e
// = 1.023 is the price of Hodges-Lehmann. docs/ci.md says more. Thresholds and the absolute floor
// come on top.
struct DetectableChange {
  OptDouble change;
  std::string reason;  // where it is unknown
};

// Of the comparison that was made.
DetectableChange detectable_change(const TimeShift& time);

// For each row of `record`: of its case, against as many rounds of another record of the same
// noise. The noise is the standard deviation of the rounds' medians, and no less than what the 95 %
// intervals of the medians say. Unknown on rows without a time, simulated ones, and with fewer
// rounds than a comparison needs of a base.
std::vector<DetectableChange> detectable_changes(const Record& record);

}  // namespace rooflash
