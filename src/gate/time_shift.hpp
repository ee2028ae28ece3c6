// The time tier: how a case's time moved between two records. The unit is a round: one value each,
// the median of its samples. Samples of one round share the process and the state of the card, are
// not independent, and so cannot stand in for rounds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/match.hpp"
#include "measure/statistics.hpp"

namespace rooflash {

enum class Direction { slower, faster, same, unsure };

struct TimeRules {
  OptDouble threshold;  // relative change that matters; unset: 2 % for paired rounds and simulated
                        // rows, 5 % for the rest
  double floor_us = 1;  // change that never matters, on rows that were measured
  bool paired = false;  // round i of both records ran side by side
};

inline constexpr double kPairedThreshold = 0.02;
inline constexpr double kUnpairedThreshold = 0.05;
inline constexpr std::size_t kLeastPairs = 6;
inline constexpr std::size_t kLeastBaseRounds = 5;
inline constexpr std::size_t kLeastNewRounds = 3;

struct TimeShift {
  std::vector<double> base_us;  // of each round; of several GPUs in a round, their median
  std::vector<double> candidate_us;
  double base_median_us = 0;
  double candidate_median_us = 0;
  double ratio = 1;              // candidate / base: Hodges-Lehmann over the rounds' logarithms
  std::optional<Interval> ci95;  // of the ratio; empty where the rounds are too few
  OptDouble p;                   // empty likewise, and on simulated rows, which have no noise
  OptDouble q;                   // Benjamini-Hochberg over all cases compared
  OptDouble cycles_ratio;        // where a change in time was checked in cycles
  double threshold = 0;          // relative change that matters here
  Direction direction = Direction::unsure;
  std::string reason;  // where unsure
};

// Empty where a side has no time. `base` is the record of match.base: its measured roofs say
// whether the SM clock can explain a change.
std::optional<TimeShift> time_shift(const Record& base, const Match& match, const TimeRules& rules);

// "+6.2%" for 1.062; "+0.0%" never has a minus sign.
std::string percent_change(double ratio);

}  // namespace rooflash
