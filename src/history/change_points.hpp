// Where the level of a series moved. Advisory: it says where to look, not that something is wrong.
//
// The logarithms of the times are fitted by steps, each at the median of its points. The best fit
// is the one with the least
//
//   sum of |x - median of its step| / b   +   2 ln(n) for each change
//
// found exactly by dynamic programming. It is the penalised least absolute deviation fit: with
// Laplace noise of scale b the penalty is twice that of the Bayesian information criterion. b comes
// from the median step between neighbours, and is no less than what the points' own 95 % intervals
// say. Changes below a threshold are then taken back, the smallest first.
#pragma once

#include <span>
#include <vector>

#include "core/record.hpp"
#include "history/series.hpp"

namespace rooflash {

struct ChangePoint {
  std::size_t index = 0;  // of the first point at the new level
  double before_us = 0;   // median of the points since the change before
  double after_us = 0;    // median of the points up to the next change
  std::size_t points_before = 0;
  std::size_t points_after = 0;
  double ratio = 1;  // after_us / before_us
};

inline constexpr double kChangeThreshold = 0.02;
// A measured level needs so many points, so that a change shows once it has lasted. Simulated times
// have no noise: one point is a level.
inline constexpr std::size_t kLeastLevel = 3;

// Whether a series is long enough for a change to show.
bool can_change(const Series& series);

// In order. `threshold` is the relative change that matters, above 0.
std::vector<ChangePoint> change_points(const Series& series, double threshold = kChangeThreshold);

}  // namespace rooflash
