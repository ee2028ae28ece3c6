#include "gate/compare.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.hpp"
#include "gate/match.hpp"

namespace rooflash {
namespace {

using fixture::measured;
using fixture::record;
using fixture::row;
using fixture::simulated;

// The verdict of the only case of two records.
CaseComparison only(const Record& base, const Record& candidate, const CompareRules& rules = {}) {
  const Comparison comparison = compare(base, candidate, rules);
  EXPECT_EQ(comparison.cases.size(), 1U);
  return comparison.cases.empty() ? CaseComparison{} : comparison.cases.front();
}

Verdict verdict(const Record& base, const Record& candidate, const CompareRules& rules = {}) {
  return only(base, candidate, rules).verdict;
}

ExitCode code(const Record& base, const Record& candidate, const CompareRules& rules = {},
              const GatePolicy& policy = {}) {
  return gate_exit_code(compare(base, candidate, rules), policy);
}

CompareRules threshold(double relative) {
  CompareRules rules;
  rules.time.threshold = relative;
  return rules;
}

TEST(GateTime, DoubledAndTwentyPercentFailFivePercentPassesAtTenPercent) {
  const Record base = measured(1000);
  EXPECT_EQ(code(base, measured(2000), threshold(0.10)), ExitCode::slower);
  EXPECT_EQ(code(base, measured(1200), threshold(0.10)), ExitCode::slower);
  EXPECT_EQ(code(base, measured(1050), threshold(0.10)), ExitCode::ok);
}

TEST(GateTime, SameRecordTwiceIsSame) {
  const CaseComparison found = only(measured(1000), measured(1000));
  EXPECT_EQ(found.verdict, Verdict::same);
  EXPECT_DOUBLE_EQ(found.time->shift.ratio, 1);
  EXPECT_GT(found.time->shift.p.value(), 0.9);
}

TEST(GateTime, IdenticalValuesInAllRoundsAreSame) {
  Record base = measured(1000);
  for (Row& one : base.rows) one.time_us->median = 1000;
  EXPECT_EQ(verdict(base, base), Verdict::same);
}

TEST(GateTime, FasterNeverFails) {
  const Record base = measured(1000);
  EXPECT_EQ(verdict(base, measured(500)), Verdict::faster);
  EXPECT_EQ(code(base, measured(500), {}, {true, true}), ExitCode::ok);
}

TEST(GateTime, SwappedRecordsSwapTheVerdict) {
  EXPECT_EQ(verdict(measured(1000), measured(1100)), Verdict::slower);
  EXPECT_EQ(verdict(measured(1100), measured(1000)), Verdict::faster);
}

TEST(GateTime, TooFewRoundsAreUnsureHoweverLargeTheChange) {
  for (const int n : {1, 2, 4}) {
    const CaseComparison found = only(measured(1000, n), measured(2000, n));
    EXPECT_EQ(found.verdict, Verdict::unsure);
    EXPECT_FALSE(found.time->shift.ci95);
    EXPECT_EQ(found.reason,
              "needs 5 + 3 rounds, has " + std::to_string(n) + " + " + std::to_string(n));
  }
  EXPECT_EQ(verdict(measured(1000, 5), measured(2000, 3)), Verdict::slower);
}

// A gate that could decide nothing does not pass.
TEST(GateTime, OnlyTooFewRoundsIsNothingCompared) {
  EXPECT_EQ(code(measured(1000, 1), measured(1000, 1)), ExitCode::nothing_ran);
}

// Two hundred samples of one round are one value.
TEST(GateTime, SamplesOfARoundDoNotCountAsRounds) {
  Record base = measured(1000, 1);
  Record slow = measured(1100, 1);
  base.rows[0].time_us->samples.assign(200, 1000);
  slow.rows[0].time_us->samples.assign(200, 1100);
  base.rows[0].time_us->n = slow.rows[0].time_us->n = 200;
  EXPECT_EQ(verdict(base, slow), Verdict::unsure);
}

TEST(GateTime, TwoGpusOfARoundAreOneValue) {
  Record base = measured(1000, 4);
  for (Row other : fixture::rounds("fa2", 1024, 1000, 4)) {
    other.device = "cuda:1";
    base.rows.push_back(other);
  }
  base.environment.devices.push_back(base.environment.devices[0]);
  base.environment.devices.back().device = "cuda:1";
  EXPECT_EQ(only(base, measured(1000)).time->base_us.size(), 4U);
}

TEST(GateTime, WideIntervalIsUnsure) {
  Record noisy = measured(1000);
  for (std::size_t i = 0; i < noisy.rows.size(); i += 2) noisy.rows[i].time_us->median *= 1.3;
  EXPECT_EQ(verdict(measured(1000), noisy), Verdict::unsure);
  EXPECT_EQ(code(measured(1000), noisy), ExitCode::ok);
  EXPECT_EQ(code(measured(1000), noisy, {}, {true, true}), ExitCode::unsure);
}

// 0.3 us are below what events resolve; they matter neither on 3 us nor on 30 ms.
TEST(GateTime, SmallAbsoluteChangeOnAShortKernelIsSame) {
  EXPECT_EQ(verdict(measured(3.0), measured(3.3)), Verdict::same);
  EXPECT_EQ(verdict(measured(30000.0), measured(30000.3)), Verdict::same);
  CompareRules no_floor;
  no_floor.time.floor_us = 0;
  EXPECT_EQ(verdict(measured(3.0), measured(3.3), no_floor), Verdict::slower);
}

TEST(GateTime, DefaultThresholdIsFivePercentAndTwoForPairedRounds) {
  const Record base = measured(1000);
  const Record slow = measured(1035);
  CompareRules paired;
  paired.time.paired = true;
  EXPECT_EQ(verdict(base, slow), Verdict::same);
  EXPECT_EQ(verdict(base, slow, paired), Verdict::slower);
}

// Drift that both records share cancels only where their rounds ran side by side.
TEST(GateTime, PairedRoundsCancelDrift) {
  Record base = measured(1000, 8);
  Record slow = measured(1030, 8);
  for (std::size_t i = 0; i < 8; ++i) {
    const double drift = 1 + 0.05 * static_cast<double>(i);
    base.rows[i].time_us->median *= drift;
    slow.rows[i].time_us->median *= drift;
  }
  CompareRules paired = threshold(0.02);
  EXPECT_EQ(verdict(base, slow, paired), Verdict::unsure);
  paired.time.paired = true;
  EXPECT_EQ(verdict(base, slow, paired), Verdict::slower);
}

TEST(GateTime, PairedNeedsSixCommonRounds) {
  Record other_rounds = measured(2000, 8);
  for (Row& one : other_rounds.rows) one.round += 3;
  CompareRules paired;
  paired.time.paired = true;
  const CaseComparison found = only(measured(1000, 8), other_rounds, paired);
  EXPECT_EQ(found.verdict, Verdict::unsure);
  EXPECT_EQ(found.reason, "needs 6 pairs of rounds, has 5");
}

// The clock fell by 10 %: more time, the same cycles.
TEST(GateTime, SlowerClockIsUnsureWhereComputeBoundAndSlowerWhereMemoryBound) {
  Record base = measured(1000);
  Record slow = measured(1100);
  for (Row& one : base.rows) one.cycles_median = one.time_us->median * 1980;
  for (Row& one : slow.rows) one.cycles_median = one.time_us->median * 1800;
  const CaseComparison found = only(base, slow);
  EXPECT_EQ(found.verdict, Verdict::unsure);
  EXPECT_TRUE(found.reason.starts_with("clock: ")) << found.reason;

  Ceilings roofs;
  roofs.device = fixture::kMeasured;
  roofs.hbm_copy_gbps = 4000;
  roofs.gemm_tflops["bf16"] = 800;
  base.ceilings = {roofs};
  EXPECT_EQ(verdict(base, slow), Verdict::unsure);
  for (Row& one : base.rows) one.model.compulsory_bytes = std::int64_t{1} << 40;
  EXPECT_EQ(verdict(base, slow), Verdict::slower);
}

TEST(GateTime, MoreCyclesConfirmASlowDown) {
  Record base = measured(1000);
  Record slow = measured(1100);
  for (Row& one : base.rows) one.cycles_median = one.time_us->median * 1980;
  for (Row& one : slow.rows) one.cycles_median = one.time_us->median * 1980;
  EXPECT_EQ(verdict(base, slow), Verdict::slower);
}

TEST(GateTime, SlowerOnASharedGpuIsUnsure) {
  Record slow = measured(1200);
  slow.rows[2].flags = {"shared_gpu"};
  EXPECT_EQ(verdict(measured(1000), slow), Verdict::unsure);
}

TEST(GateTime, FalseDiscoveryRateIsOverAllCases) {
  std::vector<Row> base;
  std::vector<Row> slow;
  for (int i = 1; i <= 10; ++i) {
    for (const Row& one : fixture::rounds("fa2", 128 * i, 1000, 7)) base.push_back(one);
    for (const Row& one : fixture::rounds("fa2", 128 * i, i == 1 ? 1200 : 1000, 7)) {
      slow.push_back(one);
    }
  }
  const Comparison comparison = compare(record(base), record(slow), {});
  ASSERT_EQ(count(comparison, Verdict::slower), 1);
  for (const CaseComparison& one : comparison.cases) {
    if (one.verdict != Verdict::slower) continue;
    EXPECT_NEAR(*one.time->q, 10 * *one.time->shift.p, 1e-12);
  }
}

TEST(GateSimulated, OneRoundDecides) {
  EXPECT_EQ(verdict(simulated(100), simulated(100)), Verdict::same);
  EXPECT_EQ(verdict(simulated(100), simulated(101)), Verdict::same);
  EXPECT_EQ(verdict(simulated(100), simulated(103)), Verdict::slower);
  EXPECT_EQ(verdict(simulated(100), simulated(90)), Verdict::faster);
  EXPECT_EQ(verdict(simulated(3), simulated(3.3)), Verdict::slower);
}

TEST(GateSimulated, IsNeverComparedWithMeasured) {
  const CaseComparison found = only(simulated(1000), measured(2000));
  EXPECT_EQ(found.verdict, Verdict::not_comparable);
  EXPECT_EQ(found.reason, "base: NVIDIA H200, 132 SMs, simulated; new: NVIDIA H200, 132 SMs");
  EXPECT_EQ(code(measured(1000), simulated(1000)), ExitCode::not_comparable);
}

TEST(GateSimulated, MixedRecordsCompareLikeWithLike) {
  std::vector<Row> base = fixture::rounds("fa2", 1024, 1000, 7);
  std::vector<Row> slow = fixture::rounds("fa2", 1024, 1000, 7);
  base.push_back(row("fa2", 1024, 900, 0, fixture::kSimulated));
  slow.push_back(row("fa2", 1024, 990, 0, fixture::kSimulated));
  const Comparison comparison = compare(record(base), record(slow), {});
  ASSERT_EQ(comparison.cases.size(), 2U);
  EXPECT_EQ(count(comparison, Verdict::same), 1);
  EXPECT_EQ(count(comparison, Verdict::slower), 1);
}

TEST(GateSimulated, MoreHbmBytesAreSlower) {
  Record base = simulated(100);
  Record more = simulated(100);
  base.rows[0].model.predicted_hbm_bytes = 1e6;
  more.rows[0].model.predicted_hbm_bytes = 1.02e6;
  const CaseComparison found = only(base, more);
  EXPECT_EQ(found.verdict, Verdict::slower);
  EXPECT_EQ(found.reason, "hbm_bytes +2.0%");
}

TEST(GateFigures, OneRoundOfCountersDecidesWhereTimeCannot) {
  Record base = measured(1000, 1);
  Record more = measured(1000, 1);
  for (Record* one : {&base, &more}) {
    one->rows[0].counters.hbm_read_bytes = 80e6;
    one->rows[0].counters.hbm_write_bytes = 20e6;
    one->rows[0].counters.tensor_ops = 1e12;
  }
  EXPECT_EQ(code(base, more), ExitCode::nothing_ran);
  CompareRules no_time;
  no_time.use_time = false;
  EXPECT_EQ(code(base, more, no_time), ExitCode::ok);
  more.rows[0].counters.hbm_read_bytes = 85e6;
  EXPECT_EQ(code(base, more), ExitCode::slower);
  more.rows[0].flags = {"l2_resident"};  // its HBM bytes say nothing
  EXPECT_EQ(verdict(base, more, no_time), Verdict::same);
  more.rows[0].counters.tensor_ops = 1.02e12;
  EXPECT_EQ(only(base, more, no_time).reason, "tensor_ops +2.0%");
}

TEST(GateFigures, SpillsFailAndRegistersWithinTheirGranuleDoNot) {
  Record base = measured(1000);
  Record other = measured(1000);
  for (Row& one : base.rows) one.resources = {160, 0, 65536, 128, 1, 1.0, 4096};
  for (Row& one : other.rows) one.resources = {166, 0, 65536, 128, 1, 1.0, 4200};
  EXPECT_EQ(verdict(base, other), Verdict::same);
  for (Row& one : other.rows) one.resources.spill_bytes = 4;
  const CaseComparison spilled = only(base, other);
  EXPECT_EQ(spilled.verdict, Verdict::slower);
  EXPECT_EQ(spilled.reason, "spill_bytes 0 to 4");
  for (Row& one : other.rows) one.resources = {168, 0, 65536, 128, 1, 1.0, 4096};
  EXPECT_EQ(only(base, other).reason, "registers +5.0%");
  for (Row& one : other.rows) one.resources = {160, 0, 66560, 128, 1, 1.0, 4096};
  EXPECT_EQ(verdict(base, other), Verdict::slower);
  for (Row& one : other.rows) one.resources = {160, 0, 65536, 128, 1, 1.0, 8192};
  EXPECT_EQ(verdict(base, other), Verdict::slower);
  CompareRules time_only;
  time_only.use_resources = false;
  EXPECT_EQ(verdict(base, other, time_only), Verdict::same);
}

TEST(GateFigures, ConfirmedGainInTimeOutweighsThem) {
  Record base = measured(1000);
  Record gained = measured(900);
  for (Row& one : base.rows) one.resources.registers = 128;
  for (Row& one : gained.rows) one.resources.registers = 168;
  EXPECT_EQ(verdict(base, gained), Verdict::faster);
  EXPECT_EQ(code(base, gained), ExitCode::ok);
}

TEST(GateRows, MissingFailsUnlessAllowed) {
  std::vector<Row> two = fixture::rounds("fa2", 1024, 1000, 7);
  for (const Row& one : fixture::rounds("fa2", 2048, 2000, 7)) two.push_back(one);
  const Comparison comparison = compare(record(two), measured(1000), {});
  EXPECT_EQ(count(comparison, Verdict::gone), 1);
  EXPECT_EQ(gate_exit_code(comparison, {}), ExitCode::incomplete);
  EXPECT_EQ(gate_exit_code(comparison, {false, false}), ExitCode::ok);
}

TEST(GateRows, NewCasesNeverFailAndAreListed) {
  std::vector<Row> two = fixture::rounds("fa2", 1024, 1000, 7);
  for (const Row& one : fixture::rounds("fa2", 2048, 2000, 7)) two.push_back(one);
  const Comparison comparison = compare(measured(1000), record(two), {});
  EXPECT_EQ(count(comparison, Verdict::fresh), 1);
  EXPECT_EQ(gate_exit_code(comparison, {true, true}), ExitCode::ok);
}

TEST(GateRows, RenamedKernelIsGoneAndNew) {
  const Comparison comparison =
      compare(measured(1000), record(fixture::rounds("fa2x", 1024, 1000, 7)), {});
  EXPECT_EQ(count(comparison, Verdict::gone), 1);
  EXPECT_EQ(count(comparison, Verdict::fresh), 1);
  EXPECT_EQ(gate_exit_code(comparison, {}), ExitCode::incomplete);
  EXPECT_EQ(gate_exit_code(comparison, {false, false}), ExitCode::nothing_ran);
}

TEST(GateRows, OrderOfTheRowsChangesNothing) {
  std::vector<Row> rows = fixture::rounds("fa2", 1024, 1000, 7);
  for (const Row& one : fixture::rounds("naive", 1024, 4000, 7)) rows.push_back(one);
  std::vector<Row> reversed(rows.rbegin(), rows.rend());
  for (Row& one : reversed) one.time_us->median *= 1.1;
  const Comparison comparison = compare(record(rows), record(reversed), {});
  ASSERT_EQ(comparison.cases.size(), 2U);
  for (const CaseComparison& one : comparison.cases) EXPECT_NEAR(one.time->shift.ratio, 1.1, 1e-9);
}

TEST(GateRows, OtherGpuIsNotComparable) {
  Record other = measured(1000);
  for (Row& one : other.rows) one.gpu = "NVIDIA H100 PCIe";
  EXPECT_EQ(verdict(measured(1000), other), Verdict::not_comparable);
  Record slice = measured(1000);
  slice.environment.devices[0].sm_count = 60;
  EXPECT_EQ(verdict(measured(1000), slice), Verdict::not_comparable);
  slice = measured(1000);
  slice.environment.devices[0].mig = true;
  EXPECT_EQ(code(measured(1000), slice), ExitCode::not_comparable);
}

TEST(GateRows, DeviceIndexAndPassingStateAreNoIdentity) {
  Record other = measured(1000);
  other.environment.devices[0].device = "cuda:4";
  other.environment.devices[0].memory_bytes = 1;
  other.environment.host_hash = "other";
  other.environment.date = "2030-01-01T00:00:00Z";
  for (Row& one : other.rows) {
    one.device = "cuda:4";
    one.temperature_c = 80;
    one.clock_mhz = Clock{1500.0, 1400.0, 1600.0, {}};
  }
  EXPECT_EQ(verdict(measured(1000), other), Verdict::same);
}

TEST(GateRows, OtherDriverIsComparedAndNamed) {
  Record other = measured(1000);
  other.environment.driver = "581.2";
  const Comparison comparison = compare(measured(1000), other, {});
  EXPECT_EQ(count(comparison, Verdict::same), 1);
  ASSERT_EQ(comparison.differences.size(), 1U);
  EXPECT_EQ(comparison.differences[0], "driver: base 580.1, new 581.2");
}

TEST(GateRows, OtherSeedIsComparedAndNamed) {
  Record base = measured(1000);
  Record other = measured(1000);
  base.seed = 1;
  other.seed = 2;
  const Comparison comparison = compare(base, other, {});
  EXPECT_EQ(count(comparison, Verdict::same), 1);
  EXPECT_EQ(comparison.differences, std::vector<std::string>{"seed: base 1, new 2"});
}

TEST(GateRows, OtherMeasuredHbmRateIsNamed) {
  Record base = measured(1000);
  Record slow = measured(1000);
  base.ceilings = slow.ceilings = {Ceilings{fixture::kMeasured, "measured", 4300.0, {}, {}, {}}};
  EXPECT_TRUE(environment_differences(base, slow).empty());
  slow.ceilings[0].hbm_copy_gbps = 4000;
  EXPECT_EQ(environment_differences(base, slow),
            std::vector<std::string>{"measured HBM rate: base 4300 GB/s, new 4000 GB/s"});
}

TEST(GateRows, OtherDefinitionConventionOrWayOfMeasuringIsNotComparable) {
  const auto changed = [](auto change) {
    Record other = measured(2000);
    for (Row& one : other.rows) change(one);
    return only(measured(1000), other);
  };
  for (const CaseComparison& found : {
           changed([](Row& one) { one.definition_hash = "0000000000000000"; }),
           changed([](Row& one) { one.model.convention = "half-causal"; }),
           changed([](Row& one) { one.time_us->l2 = "warm"; }),
           changed([](Row& one) { one.time_us->power = "sustained"; }),
           changed([](Row& one) { one.time_us->timer = "graph"; }),
       }) {
    EXPECT_EQ(found.verdict, Verdict::not_comparable);
    EXPECT_TRUE(found.reason.starts_with("other ")) << found.reason;
  }
}

Row without_result(Status status) {
  Row one = row("fa2", 1024, 1);
  one.status = status;
  one.reason = "made up";
  one.time_us.reset();
  return one;
}

TEST(GateRows, WrongBeatsEveryOtherVerdict) {
  Record other = measured(2000);
  other.rows[3] = without_result(Status::wrong);
  other.rows[3].round = 3;
  for (Row& one : other.rows) one.gpu = "NVIDIA A100";
  EXPECT_EQ(verdict(measured(1000), other), Verdict::wrong);
  EXPECT_EQ(code(measured(1000), other), ExitCode::wrong);
  EXPECT_EQ(code(record({}), other), ExitCode::wrong);
}

TEST(GateRows, FailuresAreIncomplete) {
  for (const Status status :
       {Status::failed, Status::crashed, Status::timeout, Status::not_run, Status::oom}) {
    EXPECT_EQ(code(measured(1000), record({without_result(status)})), ExitCode::incomplete);
  }
  EXPECT_EQ(verdict(measured(1000), record({without_result(Status::unsupported)})), Verdict::gone);
}

TEST(GateRows, UnverifiedAndImplausibleNeverPass) {
  Record unverified = measured(500);
  unverified.rows[1].verify.status = "skipped";
  EXPECT_EQ(code(measured(1000), unverified), ExitCode::incomplete);
  EXPECT_EQ(code(unverified, measured(1000)), ExitCode::not_comparable);
  Record implausible = measured(500);
  implausible.rows[1].flags = {"implausible"};
  EXPECT_EQ(code(measured(1000), implausible), ExitCode::incomplete);
  EXPECT_EQ(code(implausible, measured(1000)), ExitCode::not_comparable);
  EXPECT_EQ(code(record({}), implausible), ExitCode::incomplete);
}

TEST(GateRows, FirstGoodResultOfACaseIsNew) {
  EXPECT_EQ(verdict(record({without_result(Status::crashed)}), measured(1000)), Verdict::fresh);
  EXPECT_EQ(verdict(record({without_result(Status::wrong)}), measured(1000)), Verdict::fresh);
}

TEST(GateRows, UnsupportedOnBothSidesIsNoCase) {
  const Record none = record({without_result(Status::unsupported)});
  const Comparison comparison = compare(none, none, {});
  EXPECT_TRUE(comparison.cases.empty());
  EXPECT_EQ(comparison.without_result, 1);
  EXPECT_EQ(gate_exit_code(comparison, {}), ExitCode::nothing_ran);
}

TEST(GateRows, EmptyRecordsAreNothingCompared) {
  EXPECT_EQ(code(record({}), record({})), ExitCode::nothing_ran);
  EXPECT_EQ(code(record({}), measured(1000)), ExitCode::nothing_ran);
}

// A count is never an exit code: 256 would wrap to a pass.
TEST(GateExit, TwoHundredFiftySixSlowDownsAreExitOne) {
  std::vector<Row> base;
  std::vector<Row> slow;
  for (int i = 1; i <= 256; ++i) {
    base.push_back(row("fa2", i, 100, 0, fixture::kSimulated));
    slow.push_back(row("fa2", i, 110, 0, fixture::kSimulated));
  }
  const Comparison comparison = compare(record(base), record(slow), {});
  EXPECT_EQ(count(comparison, Verdict::slower), 256);
  EXPECT_EQ(static_cast<int>(gate_exit_code(comparison, {})), 1);
}

TEST(GateExit, PrecedenceIsWrongIncompleteSlowerNotComparable) {
  Record base =
      record({row("a", 1, 100, 0, fixture::kSimulated), row("b", 1, 100, 0, fixture::kSimulated),
              row("c", 1, 100, 0, fixture::kSimulated), row("d", 1, 100, 0, fixture::kSimulated)});
  Record other = base;
  EXPECT_EQ(code(base, other), ExitCode::ok);
  other.rows[0].definition_hash = "0000000000000000";
  EXPECT_EQ(code(base, other), ExitCode::not_comparable);
  other.rows[1].time_us->median = 200;
  EXPECT_EQ(code(base, other), ExitCode::slower);
  other.rows[2].status = Status::crashed;
  EXPECT_EQ(code(base, other), ExitCode::incomplete);
  other.rows[3].status = Status::wrong;
  EXPECT_EQ(code(base, other), ExitCode::wrong);
}

TEST(GateExit, GeomeanIsOverTheCasesWithBothTimes) {
  const Record base =
      record({row("a", 1, 100, 0, fixture::kSimulated), row("b", 1, 100, 0, fixture::kSimulated),
              row("c", 1, 100, 0, fixture::kSimulated)});
  const Record other =
      record({row("a", 1, 200, 0, fixture::kSimulated), row("b", 1, 50, 0, fixture::kSimulated)});
  const auto mean = geomean_ratio(compare(base, other, {}));
  ASSERT_TRUE(mean);
  EXPECT_NEAR(mean->ratio, 1, 1e-12);
  EXPECT_EQ(mean->cases, 2);
  EXPECT_FALSE(geomean_ratio(compare(record({}), other, {})));
}

}  // namespace
}  // namespace rooflash
