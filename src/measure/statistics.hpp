// Order statistics of a few noisy samples. No distribution is assumed anywhere.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace rooflash {

// Middle value, or the mean of the two middle ones. NaN for no values.
double median(std::span<const double> values);

struct Interval {
  double low = 0;
  double high = 0;
};

// Rank k (1-based) such that the k-th smallest and k-th largest of `n` independent samples enclose
// the median of their distribution with a probability of at least 95 %; 0 where n < 6 is too few.
std::int64_t median_ci95_rank(std::int64_t n);

// 95 % interval of the median from order statistics (exact binomial coverage). With fewer than 6
// values it is min..max, whose coverage is lower: 1 - 2^(1-n). NaN for no values.
Interval median_ci95(std::span<const double> values);

// (max - min) / median; 0 for fewer than two values.
double relative_spread(std::span<const double> values);

// When to stop sampling. The minimum number of samples is taken whatever the time; after that the
// first of these that holds ends it.
struct StopRule {
  std::int64_t min_samples = 10;
  std::int64_t max_samples = 200;
  double max_noise = 0.005;  // of the interval's half width, relative to the median
  double max_time_s = 0.4;   // since the first sample began

  // "ci", "max_samples" or "max_time"; empty while sampling must go on.
  std::string_view fired(std::span<const double> samples, double elapsed_s) const;
};

}  // namespace rooflash
