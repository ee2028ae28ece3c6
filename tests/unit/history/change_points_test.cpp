// Change points on series whose changes are known, and on noise, which has none.
#include "history/change_points.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace rooflash {
namespace {

Series series_of(const std::vector<double>& times, double half_width = 0) {
  Series series;
  for (const double time : times) {
    SeriesPoint point;
    point.time_us = time;
    point.ci95 = {time * (1 - half_width), time * (1 + half_width)};
    series.points.push_back(point);
  }
  return series;
}

// `count` times around 100 us with a relative deviation of `noise`, from point `at` on `ratio`
// times as long. One in twelve is an outlier of up to several times the noise, always slower.
std::vector<double> noisy(std::mt19937_64& random, int count, double noise, int at, double ratio) {
  std::normal_distribution<double> normal(0, noise);
  std::exponential_distribution<double> exponential(1 / (4 * noise));
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<double> times;
  for (int i = 0; i < count; ++i) {
    const double outlier = uniform(random) < 1.0 / 12 ? exponential(random) : 0;
    times.push_back(100 * std::exp(normal(random) + outlier) * (i >= at ? ratio : 1));
  }
  return times;
}

TEST(ChangePoints, AStepIsFoundWithItsLevels) {
  const auto changes =
      change_points(series_of({100, 101, 99, 100, 100.5, 106, 105, 106.5, 106, 105.5}));
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].index, 5U);
  EXPECT_EQ(changes[0].before_us, 100);
  EXPECT_EQ(changes[0].after_us, 106);
  EXPECT_EQ(changes[0].points_before, 5U);
  EXPECT_EQ(changes[0].points_after, 5U);
  EXPECT_DOUBLE_EQ(changes[0].ratio, 1.06);
}

TEST(ChangePoints, UpAndDownAgain) {
  const auto changes =
      change_points(series_of({100, 101, 99, 100, 110, 111, 109, 110, 100, 99, 101, 100}));
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].index, 4U);
  EXPECT_GT(changes[0].ratio, 1);
  EXPECT_EQ(changes[1].index, 8U);
  EXPECT_LT(changes[1].ratio, 1);
}

TEST(ChangePoints, ChangesBelowTheThresholdAreNone) {
  const std::vector<double> times{100, 100, 100, 100, 101.5, 101.5, 101.5, 101.5};
  EXPECT_TRUE(change_points(series_of(times)).empty());
  EXPECT_EQ(change_points(series_of(times), 0.01).size(), 1U);
}

TEST(ChangePoints, ALevelOfAMeasuredSeriesLasts) {
  const std::vector<double> late{100, 100.1, 99.9, 100, 100.1, 110, 110.1};
  EXPECT_TRUE(change_points(series_of(late)).empty());
  EXPECT_TRUE(change_points(series_of({100, 110})).empty());
  EXPECT_TRUE(change_points(series_of({100})).empty());
  EXPECT_TRUE(change_points(series_of({})).empty());
}

// A modelled time that moved has moved.
TEST(ChangePoints, SimulatedSeriesChangeAtOnce) {
  Series series = series_of({100, 100, 100, 103});
  series.simulated = true;
  const auto changes = change_points(series);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].index, 3U);
  EXPECT_EQ(change_points([&] {
              Series two = series_of({100, 103});
              two.simulated = true;
              return two;
            }())
                .size(),
            1U);
}

// What the records themselves call uncertain is no change.
TEST(ChangePoints, WideIntervalsMakeItCautious) {
  const std::vector<double> times{100, 100.1, 99.9, 103, 103.1, 102.9};
  EXPECT_EQ(change_points(series_of(times, 0.001)).size(), 1U);
  EXPECT_TRUE(change_points(series_of(times, 0.10)).empty());
}

TEST(ChangePoints, NoiseHasNone) {
  std::mt19937_64 random(1);
  int alarms = 0;
  for (int i = 0; i < 400; ++i) {
    alarms += change_points(series_of(noisy(random, 30, 0.01, 30, 1))).empty() ? 0 : 1;
  }
  EXPECT_LE(alarms, 12);  // 3 %
}

TEST(ChangePoints, AStepOfFivePercentIsFoundInNoiseOfOne) {
  std::mt19937_64 random(2);
  int found = 0;
  for (int i = 0; i < 400; ++i) {
    for (const ChangePoint& change : change_points(series_of(noisy(random, 30, 0.01, 20, 1.05)))) {
      if (change.index >= 19 && change.index <= 21) ++found;
    }
  }
  EXPECT_GE(found, 376);  // 94 %
}

}  // namespace
}  // namespace rooflash
