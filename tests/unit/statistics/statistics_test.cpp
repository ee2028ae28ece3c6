#include "measure/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace rooflash {
namespace {

TEST(Median, OddEvenAndUnordered) {
  EXPECT_DOUBLE_EQ(median(std::vector<double>{3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median(std::vector<double>{7}), 7);
  EXPECT_TRUE(std::isnan(median({})));
}

// Ranks of the published tables of the sign-test interval for the median.
TEST(MedianCi, RanksMatchTheSignTestTable) {
  EXPECT_EQ(median_ci95_rank(5), 0);
  EXPECT_EQ(median_ci95_rank(6), 1);
  EXPECT_EQ(median_ci95_rank(8), 1);
  EXPECT_EQ(median_ci95_rank(9), 2);
  EXPECT_EQ(median_ci95_rank(10), 2);
  EXPECT_EQ(median_ci95_rank(12), 3);
  EXPECT_EQ(median_ci95_rank(20), 6);
  EXPECT_EQ(median_ci95_rank(25), 8);
  EXPECT_EQ(median_ci95_rank(50), 18);
  EXPECT_EQ(median_ci95_rank(100), 40);
}

TEST(MedianCi, LargeSamplesDoNotUnderflow) {
  // Normal approximation: n/2 - 1.96 sqrt(n)/2.
  const std::int64_t n = 100000;
  EXPECT_NEAR(static_cast<double>(median_ci95_rank(n)), n / 2.0 - 0.98 * std::sqrt(n), 3);
}

TEST(MedianCi, FewValuesGiveTheRange) {
  const std::vector<double> values{5, 1, 4};
  const Interval ci = median_ci95(values);
  EXPECT_DOUBLE_EQ(ci.low, 1);
  EXPECT_DOUBLE_EQ(ci.high, 5);
}

// The interval holds the true median in at least 95 % of seeded trials, for a skewed distribution
// like that of real timings, and is not needlessly wide.
TEST(MedianCi, CoverageOnSkewedData) {
  std::mt19937_64 random(20240607);
  std::exponential_distribution<double> tail(1.0);
  const double truth = 100 + std::log(2.0);
  for (const int n : {6, 10, 25, 100}) {
    const int trials = 4000;
    int covered = 0;
    for (int t = 0; t < trials; ++t) {
      std::vector<double> samples(static_cast<std::size_t>(n));
      for (double& s : samples) s = 100 + tail(random);
      const Interval ci = median_ci95(samples);
      if (ci.low <= truth && truth <= ci.high) ++covered;
    }
    const double coverage = static_cast<double>(covered) / trials;
    EXPECT_GE(coverage, 0.943) << "n = " << n;
    EXPECT_LE(coverage, 0.990) << "n = " << n;
  }
}

TEST(Spread, RelativeToTheMedian) {
  EXPECT_DOUBLE_EQ(relative_spread(std::vector<double>{1980, 1900, 1960}), 80.0 / 1960);
  EXPECT_DOUBLE_EQ(relative_spread(std::vector<double>{5}), 0);
}

TEST(StopRule, SaysWhichLimitEndedIt) {
  const StopRule rule{.min_samples = 10, .max_samples = 20, .max_noise = 0.01, .max_time_s = 1};
  std::vector<double> quiet(9, 100.0);
  EXPECT_EQ(rule.fired(quiet, 5.0), "") << "fewer than min_samples never stop";
  quiet.push_back(100.0);
  EXPECT_EQ(rule.fired(quiet, 0.1), "ci");

  std::vector<double> noisy;
  for (int i = 0; i < 12; ++i) noisy.push_back(i % 2 == 0 ? 100.0 : 120.0);
  EXPECT_EQ(rule.fired(noisy, 0.5), "");
  EXPECT_EQ(rule.fired(noisy, 1.0), "max_time");
  noisy.resize(20, 100.0);
  EXPECT_EQ(rule.fired(noisy, 0.1), "max_samples");
}

TEST(StopRule, FewSamplesCannotProveAnInterval) {
  const StopRule rule{.min_samples = 3, .max_samples = 20, .max_noise = 0.01, .max_time_s = 1};
  EXPECT_EQ(rule.fired(std::vector<double>(3, 100.0), 0.1), "");
  EXPECT_EQ(rule.fired(std::vector<double>(6, 100.0), 0.1), "ci");
}

}  // namespace
}  // namespace rooflash
