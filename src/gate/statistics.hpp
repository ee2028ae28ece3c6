// Shift between few noisy values, without assuming a distribution: Hodges-Lehmann estimates, their
// exact intervals, and Wilcoxon's two tests.
//
// The values must be independent of each other. Samples of one round are not (they share the
// process, the card's state and its drift), so callers give one value a round.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "measure/statistics.hpp"

namespace rooflash {

// Up to so many values (of both samples together) p-values and intervals come from the exact null
// distribution; above it from its normal approximation, with tie and continuity correction.
inline constexpr std::int64_t kExactMost = 50;

// One sample of paired differences: the median of the means of all pairs, each value with itself
// included. NaN for no values.
double hodges_lehmann(std::span<const double> differences);

// Two samples: the median of all differences b - a. NaN where either is empty.
double hodges_lehmann(std::span<const double> a, std::span<const double> b);

// 95 % intervals around these estimates: the shifts that the signed-rank (rank-sum) test does not
// reject. Ties make them wider than needed, never narrower. Empty where there are too few values
// for any interval: fewer than 6 differences; two samples of 3 and 4.
std::optional<Interval> signed_rank_ci95(std::span<const double> differences);
std::optional<Interval> rank_sum_ci95(std::span<const double> a, std::span<const double> b);

// Two-sided p-values. Tied values share their mean rank, and the exact distribution is that of the
// ranks seen. Zero differences are left out; no values left, or an empty sample: 1.
double signed_rank_p(std::span<const double> differences);
double rank_sum_p(std::span<const double> a, std::span<const double> b);

// Benjamini-Hochberg: for each p the least false discovery rate at which it counts as a discovery.
std::vector<double> benjamini_hochberg(std::span<const double> p);

}  // namespace rooflash
