#include "gate/calibrate.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "fixture.hpp"

namespace rooflash {
namespace {

using fixture::record;
using fixture::row;

// Pairs of rounds whose log ratio is +noise and -noise in turn.
std::vector<CaseNoise> calibrated(double noise, int n = 8, double shift = 1) {
  std::vector<Row> base;
  std::vector<Row> same;
  for (int i = 0; i < n; ++i) {
    base.push_back(row("fa2", 1024, 1000, i));
    same.push_back(row("fa2", 1024, 1000 * shift * std::exp(i % 2 == 0 ? noise : -noise), i));
  }
  CompareRules rules;
  rules.time.paired = true;
  return calibrate(compare(record(base), record(same), rules));
}

TEST(Calibrate, NoiseIsTheDeviationOfTheLogRatio) {
  const std::vector<CaseNoise> cases = calibrated(0.01);
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].pairs, 8U);
  EXPECT_NEAR(cases[0].noise, 0.01 * std::sqrt(8.0 / 7), 1e-12);
  EXPECT_NEAR(cases[0].shift, 1, 1e-12);
  EXPECT_LT(cases[0].detectable_many, cases[0].detectable_few);
}

TEST(Calibrate, NoisierCasesGetWiderThresholdsAndTheWorstNone) {
  EXPECT_EQ(calibrated(0.001)[0].threshold, 0.02);
  EXPECT_EQ(calibrated(0.02)[0].threshold, 0.03);
  EXPECT_EQ(calibrated(0.05)[0].threshold, 0.08);
  EXPECT_FALSE(calibrated(0.2)[0].threshold);
}

// A shift between equal executables: the threshold must not fire on it.
TEST(Calibrate, ThresholdDoesNotFireOnWhatWasMeasured) {
  EXPECT_EQ(calibrated(0.001, 8, 1.04)[0].threshold, 0.05);
  EXPECT_EQ(calibrated(0.001, 8, 0.96)[0].threshold, 0.05);
}

TEST(Calibrate, TooFewPairsAndUnpairedRoundsAreLeftOut) {
  EXPECT_TRUE(calibrated(0.01, 5).empty());
  EXPECT_TRUE(calibrate(compare(fixture::measured(1000), fixture::measured(1000), {})).empty());
}

TEST(Calibrate, SimulatedRowsHaveNoNoise) {
  const auto cases = calibrate(compare(fixture::simulated(100), fixture::simulated(100), {}));
  ASSERT_EQ(cases.size(), 1U);
  EXPECT_EQ(cases[0].noise, 0);
  EXPECT_EQ(cases[0].threshold, 0.02);
}

}  // namespace
}  // namespace rooflash
