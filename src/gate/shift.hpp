// The shift between the rounds of two records: its estimate, its interval, and what it amounts to
// against a threshold. The unit is a round: one value each. Samples of one round share the process
// and the state of the card, are not independent, and so cannot stand in for rounds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "measure/statistics.hpp"

namespace rooflash {

enum class Direction { slower, faster, same, unsure };

// paired: round i of both sides was measured side by side. exact: the values have no noise.
enum class Pairing { unpaired, paired, exact };

inline constexpr std::size_t kLeastPairs = 6;
inline constexpr std::size_t kLeastBaseRounds = 5;
inline constexpr std::size_t kLeastNewRounds = 3;

// A positive value of each round, by its number.
using ByRound = std::map<int, double>;
std::vector<double> values_of(const ByRound& rounds);

struct Shift {
  double ratio = 1;              // candidate / base: Hodges-Lehmann over the rounds' logarithms
  std::optional<Interval> ci95;  // of the ratio; empty where the rounds are too few
  OptDouble p;                   // empty likewise, and where the values are exact
};

// Neither side may be empty. With too few rounds the ratio is that of the medians.
Shift shift_between(const ByRound& base, const ByRound& candidate, Pairing pairing);

// `same` is the whole interval inside the threshold, a relative change; slower and faster need the
// interval beyond 1 and the estimate beyond the threshold.
Direction direction_of(const Shift& shift, double threshold);

// The logarithms of candidate / base over the rounds that both have.
std::vector<double> paired_differences(const ByRound& base, const ByRound& candidate);

// "needs 6 pairs of rounds, has 5"
std::string too_few_rounds(const ByRound& base, const ByRound& candidate, Pairing pairing);

// "+6.2%" for 1.062; "+0.0%" never has a minus sign.
std::string percent_change(double ratio);

}  // namespace rooflash
