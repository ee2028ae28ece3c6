#include "gate/calibrate.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "fixture.hpp"

namespace rooflash {
namespace {

using fixture::record;
using fixture::row;

// Pairs of rounds whose log ratio is +noise and -noise in turn.
std::vector<CaseNoise> calibrated(double noise, int n = 8, double shift = 1,
                                  double most = kMostProposed) {
  std::vector<Row> base;
  std::vector<Row> same;
  for (int i = 0; i < n; ++i) {
    base.push_back(row("fa2", 1024, 1000, i));
    same.push_back(row("fa2", 1024, 1000 * shift * std::exp(i % 2 == 0 ? noise : -noise), i));
  }
  CompareRules rules;
  rules.time.paired = true;
  return calibrate(compare(record(base), record(same), rules), most);
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
  EXPECT_EQ(calibrated(0.018)[0].threshold, 0.03);
  EXPECT_EQ(calibrated(0.04)[0].threshold, 0.08);
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

TEST(Calibrate, ProposesNothingAboveTheThresholdOfTheGate) {
  EXPECT_EQ(calibrated(0.018, 8, 1, 0.03)[0].threshold, 0.03);
  EXPECT_EQ(calibrated(0.018, 8, 1, 0.04)[0].threshold, 0.03);
  EXPECT_EQ(calibrated(0.022, 8, 1, 0.04)[0].threshold, 0.04);
  EXPECT_FALSE(calibrated(0.05, 8, 1, 0.03)[0].threshold);
}

// Rounds of one case whose log times are normal around that of 1000 us.
std::vector<Row> noisy_rounds(double noise, int n, std::mt19937& random, double shift = 1) {
  std::normal_distribution<double> normal(0, noise);
  std::vector<Row> rows;
  for (int i = 0; i < n; ++i) {
    rows.push_back(row("fa2", 1024, 1000 * shift * std::exp(normal(random)), i));
  }
  return rows;
}

TEST(Detectable, NeedsRoundsWithATime) {
  const auto reason = [](const std::vector<Row>& rows) {
    const DetectableChange found = detectable_changes(record(rows)).front();
    EXPECT_FALSE(found.change);
    return found.reason;
  };
  std::mt19937 random(1);
  std::vector<Row> rows = noisy_rounds(0.01, 4, random);
  EXPECT_EQ(reason(rows), "needs 5 rounds, has 4 (run --rounds 5)");
  EXPECT_EQ(reason({row("fa2", 1024, 100, 0, fixture::kSimulated)}),
            "simulated: its time has no noise");
  rows[0].time_us.reset();
  EXPECT_EQ(reason(rows), "no time");
  rows = noisy_rounds(0.01, 5, random);
  rows[0].verify.status = "skipped";
  EXPECT_EQ(reason(rows), "not verified");
  EXPECT_EQ(detectable_changes(record(rows))[1].reason, "needs 5 rounds, has 4 (run --rounds 5)");
}

TEST(Detectable, IsThatOfTheRoundsMediansAndNoLessThanTheirIntervalsSay) {
  std::vector<Row> rows;
  for (int i = 0; i < 8; ++i) {
    rows.push_back(row("fa2", 1024, 1000 * std::exp(i % 2 == 0 ? 0.01 : -0.01), i));
  }
  const double noise = 0.01 * std::sqrt(8.0 / 7);
  // Student's quantiles for 14 degrees of freedom: 2.145 and 1.345.
  const double expected = std::expm1(3.490 * 1.023 * noise * std::sqrt(2.0 / 8));
  EXPECT_NEAR(*detectable_changes(record(rows))[3].change, expected, 1e-5);
  for (Row& one : rows) {
    one.time_us->ci95_low = one.time_us->median * std::exp(-0.05);
    one.time_us->ci95_high = one.time_us->median * std::exp(0.05);
  }
  EXPECT_NEAR(*detectable_changes(record(rows))[3].change,
              std::expm1(3.490 * 1.023 * 0.05 / 1.96 * std::sqrt(2.0 / 8)), 1e-4);
}

// The claim itself, and the shares that docs/ci.md gives.
TEST(Detectable, IsFoundInAboutNineOfTenComparisons) {
  constexpr double kNoise = 0.01;
  constexpr int kTimes = 1000;
  struct Rounds {
    int base;
    int candidate;
    bool paired;
    double students;  // t_0.975 + t_0.9, from tables
    double share;     // of comparisons that find it
  };
  std::mt19937 random(7);
  for (const Rounds& rounds :
       {Rounds{6, 6, true, 2.571 + 1.476, 0.75}, Rounds{7, 7, true, 2.447 + 1.440, 0.88},
        Rounds{19, 19, true, 2.101 + 1.330, 0.90}, Rounds{5, 3, false, 2.447 + 1.440, 0.81},
        Rounds{7, 7, false, 2.179 + 1.356, 0.86}}) {
    const double variance = 1.0 / rounds.base + 1.0 / rounds.candidate;
    const double change = std::expm1(rounds.students * 1.023 * kNoise * std::sqrt(variance));
    CompareRules rules;
    rules.time.paired = rounds.paired;
    int found = 0;
    std::vector<double> estimates;
    for (int i = 0; i < kTimes; ++i) {
      const Record base = record(noisy_rounds(kNoise, rounds.base, random));
      const Record slower = record(noisy_rounds(kNoise, rounds.candidate, random, 1 + change));
      const TimeShift time = *compare(base, slower, rules).cases.front().time;
      found += time.shift.ci95->low > 1 ? 1 : 0;
      estimates.push_back(*detectable_change(time).change);
    }
    EXPECT_NEAR(found, rounds.share * kTimes, 0.04 * kTimes) << rounds.base << rounds.paired;
    EXPECT_NEAR(median(estimates), change, change * 0.13) << rounds.base << rounds.paired;
  }
}

TEST(Detectable, IsUnknownWithFewRoundsAndWithoutNoise) {
  std::mt19937 random(3);
  const Record few = record(noisy_rounds(0.01, 3, random));
  const TimeShift time = *compare(few, few, {}).cases.front().time;
  EXPECT_FALSE(detectable_change(time).change);
  EXPECT_FALSE(detectable_change(time).reason.empty());
  const Record exact = fixture::simulated(100);
  EXPECT_FALSE(detectable_change(*compare(exact, exact, {}).cases.front().time).change);
}

}  // namespace
}  // namespace rooflash
