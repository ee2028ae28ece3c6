// The noise floor of a comparison of something with itself, and the thresholds that it allows.
#pragma once

#include <string>
#include <vector>

#include "gate/compare.hpp"

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

// Of each case whose rounds were paired, or that has no noise. Cases with fewer pairs than a gate
// needs are left out.
std::vector<CaseNoise> calibrate(const Comparison& same);

}  // namespace rooflash
