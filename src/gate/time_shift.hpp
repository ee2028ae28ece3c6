// The time tier: how a case's time moved between two records, and whether that is the kernel's.
#pragma once

#include <optional>
#include <string>

#include "gate/match.hpp"
#include "gate/shift.hpp"
#include "gate/verdict.hpp"

namespace rooflash {

struct TimeRules {
  OptDouble threshold;  // relative change that matters; unset: 2 % for paired rounds and simulated
                        // rows, 5 % for the rest
  double floor_us = 1;  // change that never matters, on rows that were measured
  bool paired = false;  // round i of both records ran side by side
};

inline constexpr double kPairedThreshold = 0.02;
inline constexpr double kUnpairedThreshold = 0.05;

struct TimeShift {
  ByRound base_us;  // of several GPUs in a round, their median
  ByRound candidate_us;
  ByRound base_cycles;  // where all rounds of both sides have them; else empty
  ByRound candidate_cycles;
  double base_median_us = 0;
  double candidate_median_us = 0;
  Pairing pairing = Pairing::unpaired;
  Shift shift;
  OptDouble q;                // Benjamini-Hochberg over all times judged
  OptDouble cycles_ratio;     // where a change in time was checked in cycles
  double relative = 0;        // the relative threshold
  double threshold = 0;       // change that matters here: that, or the floor where it is more
  bool compute_bound = true;  // the SM clock can explain a change
  bool shared_gpu = false;    // another process used the GPU in a round
  Direction direction = Direction::unsure;
  std::string reason;  // where unsure

  // So short that the absolute floor decides, not the threshold.
  bool is_below_floor() const { return threshold > relative; }
};

// Empty where a side has no time. `base` is the record of match.base: its measured roofs say
// whether the SM clock can explain a change.
std::optional<TimeShift> time_shift(const Record& base, const Match& match, const TimeRules& rules);

// The same of quantising the inputs, by the same rules but for the cycles, which are not known of
// it.
std::optional<TimeShift> quantize_shift(const Match& match, const TimeRules& rules);
// And of both together.
std::optional<TimeShift> with_quantize_shift(const Match& match, const TimeRules& rules);

Verdict verdict_of(Direction direction);
Ruling ruling_of(const TimeShift& time);

// "247 us to 494 us, +100.0%"
std::string change_text(const TimeShift& time);

// Why a change between the rounds may not be the kernel's: another process, or the clock, where the
// cycles did not change. "" where neither is so. `cycles` is empty where it is unknown or no help.
std::string doubt_of_change(bool shared_gpu, const std::optional<Shift>& cycles, double threshold);

}  // namespace rooflash
