// Quantising the inputs beside the attention: a verdict of its own, and what it makes of the case.
#include "gate/quantize.hpp"

#include <gtest/gtest.h>

#include "fixture.hpp"
#include "gate/compare.hpp"
#include "gate/stages.hpp"

namespace rooflash {
namespace {

using fixture::quantized;
using fixture::quantized_rounds;
using fixture::record;

constexpr double kTimeUs = 1000;
constexpr double kQuantizeUs = 200;

CaseComparison only(const Record& base, const Record& candidate, const CompareRules& rules = {}) {
  const Comparison comparison = compare(base, candidate, rules);
  EXPECT_EQ(comparison.cases.size(), 1U);
  return comparison.cases.empty() ? CaseComparison{} : comparison.cases.front();
}

// Against the base of kTimeUs and kQuantizeUs.
CaseComparison changed(double time, double quantize, const CompareRules& rules = {}) {
  return only(quantized(kTimeUs, kQuantizeUs), quantized(kTimeUs * time, kQuantizeUs * quantize),
              rules);
}

Verdict own_verdict(const CaseComparison& found) {
  return ruling_of(found.quantize.value()).verdict;
}

Record without_quantizing(Record from) {
  for (Row& one : from.rows) fixture::drop_quantizing(one, "quantising was not timed");
  return from;
}

CompareRules paired() {
  CompareRules rules;
  rules.time.paired = true;
  return rules;
}

TEST(GateQuantize, TwiceTheTimeIsSlowerThoughTheAttentionIsTheSame) {
  const CaseComparison found = changed(1, 2);
  EXPECT_EQ(found.time->direction, Direction::same);
  EXPECT_EQ(own_verdict(found), Verdict::slower);
  EXPECT_EQ(found.verdict, Verdict::slower);
  EXPECT_EQ(found.reason, "quantising slower: 200 us to 400 us, +100.0%");
  EXPECT_EQ(gate_exit_code(compare(quantized(1000, 200), quantized(1000, 400), {}), {}),
            ExitCode::slower);
}

TEST(GateQuantize, NoiseIsTheSame) {
  const CaseComparison found = changed(1, 1.01);
  EXPECT_EQ(own_verdict(found), Verdict::same);
  EXPECT_EQ(found.verdict, Verdict::same);
  EXPECT_EQ(found.reason, "");
}

TEST(GateQuantize, WideIntervalIsUnsure) {
  Record noisy = quantized(kTimeUs, kQuantizeUs);
  for (std::size_t i = 0; i < noisy.rows.size(); i += 2) noisy.rows[i].quantize_us->median *= 1.3;
  const CaseComparison found = only(quantized(kTimeUs, kQuantizeUs), noisy);
  EXPECT_EQ(own_verdict(found), Verdict::unsure);
  EXPECT_EQ(found.verdict, Verdict::unsure);
  EXPECT_TRUE(found.reason.ends_with("; more rounds would tell")) << found.reason;
}

// Inputs may come quantised, so that nobody gains by the sum.
TEST(GateQuantize, AGainOfOneNeverMakesUpForTheOther) {
  EXPECT_EQ(changed(0.5, 1.2).verdict, Verdict::slower);
  EXPECT_EQ(changed(1.2, 0.5).verdict, Verdict::slower);
  EXPECT_EQ(changed(1.2, 0.5).reason, "quantising faster: 200 us to 100 us, -50.0%");
  EXPECT_EQ(changed(1, 0.5).verdict, Verdict::faster);
  EXPECT_EQ(changed(0.5, 1).verdict, Verdict::faster);
}

TEST(GateQuantize, ThresholdFloorAndPairingAreThoseOfTime) {
  EXPECT_EQ(own_verdict(changed(1, 1.035)), Verdict::same);
  EXPECT_EQ(own_verdict(changed(1, 1.035, paired())), Verdict::slower);
  EXPECT_EQ(own_verdict(only(quantized(1000, 3.0), quantized(1000, 3.3))), Verdict::same);
  const CaseComparison few = only(quantized(1000, 200, 2), quantized(1000, 400, 2));
  EXPECT_EQ(few.verdict, Verdict::unsure);
  EXPECT_EQ(few.reason, "needs 5 + 3 rounds, has 2 + 2");  // told once
}

// The cycles in a row are those of the attention.
TEST(GateQuantize, CyclesOfTheAttentionSayNothingOfIt) {
  Record base = quantized(kTimeUs, kQuantizeUs);
  Record slow = quantized(kTimeUs, 2 * kQuantizeUs);
  for (Record* one : {&base, &slow}) {
    for (Row& row : one->rows) row.cycles_median = row.time_us->median * 1980;
  }
  EXPECT_EQ(own_verdict(only(base, slow)), Verdict::slower);
  slow.rows[2].flags = {"shared_gpu"};
  EXPECT_EQ(own_verdict(only(base, slow)), Verdict::unsure);
}

TEST(GateQuantize, BothTogetherAreShown) {
  const CaseComparison found = changed(1, 2);
  ASSERT_TRUE(found.quantize->with_attention);
  EXPECT_NEAR(found.quantize->with_attention->base_median_us, 1200, 5);
  EXPECT_NEAR(found.quantize->with_attention->shift.ratio, 1400.0 / 1200, 0.005);
  EXPECT_FALSE(found.quantize->with_attention->q);  // not judged
}

TEST(GateQuantize, ABaseWithoutItSaysSoAndDoesNotFail) {
  const Record base = without_quantizing(quantized(kTimeUs, kQuantizeUs));
  const CaseComparison found = only(base, quantized(kTimeUs, kQuantizeUs));
  EXPECT_EQ(own_verdict(found), Verdict::fresh);
  EXPECT_EQ(ruling_of(*found.quantize).reason, "base: quantising was not timed");
  EXPECT_EQ(found.verdict, Verdict::same);
  EXPECT_EQ(gate_exit_code(compare(base, quantized(kTimeUs, kQuantizeUs), {}), {true, true}),
            ExitCode::ok);
}

TEST(GateQuantize, ARecordThatLostItIsUnsureWithTheReason) {
  const Record base = quantized(kTimeUs, kQuantizeUs);
  const Record lost = without_quantizing(base);
  const CaseComparison found = only(base, lost);
  EXPECT_EQ(own_verdict(found), Verdict::gone);
  EXPECT_EQ(found.verdict, Verdict::unsure);
  EXPECT_EQ(found.reason, "quantising gone: quantising was not timed");
  EXPECT_EQ(gate_exit_code(compare(base, lost, {}), {}), ExitCode::ok);
  EXPECT_EQ(gate_exit_code(compare(base, lost, {}), {true, true}), ExitCode::unsure);
  EXPECT_EQ(only(base, without_quantizing(quantized(2 * kTimeUs, 1))).verdict, Verdict::slower);
}

TEST(GateQuantize, NothingIsSaidWhereNeitherSideHasIt) {
  const Record none = without_quantizing(quantized(kTimeUs, kQuantizeUs));
  EXPECT_FALSE(only(none, none).quantize);
  EXPECT_EQ(compare(none, none, {}).families.size(), 0U);
}

TEST(GateQuantize, OtherTimerIsNotComparable) {
  Record other = quantized(kTimeUs, kQuantizeUs);
  for (Row& one : other.rows) one.quantize_us->timer = "graph";
  const CaseComparison found = only(quantized(kTimeUs, kQuantizeUs), other);
  EXPECT_EQ(found.verdict, Verdict::not_comparable);
  EXPECT_EQ(found.reason, "quantising not-comparable: other timers: event and graph");
  CompareRules rules;
  rules.use_quantize = false;
  EXPECT_EQ(only(quantized(kTimeUs, kQuantizeUs), other, rules).verdict, Verdict::same);
}

// What rounds that still have it say is no word for those that lost it.
TEST(GateQuantize, LostInSomeRoundsIsGone) {
  Record lost = quantized(kTimeUs, kQuantizeUs);
  for (std::size_t i = 4; i < lost.rows.size(); ++i) {
    fixture::drop_quantizing(lost.rows[i], "no memory");
  }
  const CaseComparison found = only(quantized(kTimeUs, kQuantizeUs), lost);
  EXPECT_EQ(own_verdict(found), Verdict::gone);
  EXPECT_EQ(found.verdict, Verdict::unsure);
  EXPECT_EQ(found.reason, "quantising gone: no memory");
}

// The screening's word alone does not stand.
TEST(GateQuantize, LostWhereItIsMeasuredAgainIsNotSlower) {
  Record slow = quantized(kTimeUs, 1.5 * kQuantizeUs, 19);
  for (Row& one : slow.rows) {
    if (one.round >= 7) fixture::drop_quantizing(one, "no memory");
  }
  const Comparison all = compare_in_stages(quantized(kTimeUs, kQuantizeUs, 19), slow, paired(), 7);
  ASSERT_EQ(all.cases.size(), 1U);
  EXPECT_EQ(all.cases[0].verdict, Verdict::unsure);
  EXPECT_EQ(all.cases[0].reason, "quantising gone: no memory");
}

TEST(GateQuantize, BothUnsureAreBothTold) {
  Record noisy = quantized(kTimeUs, kQuantizeUs);
  for (std::size_t i = 0; i < noisy.rows.size(); i += 2) {
    noisy.rows[i].time_us->median *= 1.3;
    noisy.rows[i].quantize_us->median *= 1.3;
  }
  const CaseComparison found = only(quantized(kTimeUs, kQuantizeUs), noisy);
  EXPECT_EQ(found.verdict, Verdict::unsure);
  EXPECT_TRUE(found.reason.starts_with("more rounds would tell; quantising unsure: "))
      << found.reason;
}

TEST(GateQuantize, RulesLeaveItOutAloneOrWithTime) {
  CompareRules rules;
  rules.use_quantize = false;
  EXPECT_EQ(changed(1, 2, rules).verdict, Verdict::same);
  EXPECT_EQ(changed(2, 2, rules).verdict, Verdict::slower);
  rules = {};
  rules.use_time = false;
  EXPECT_FALSE(changed(1, 2, rules).quantize);
}

TEST(GateQuantize, FalseDiscoveryRateCountsItsTests) {
  const CaseComparison found = changed(1, 2);
  EXPECT_NEAR(*found.quantize->time->q, 2 * *found.quantize->time->shift.p, 1e-12);
}

// Eight cases whose quantising takes `quantize` times kQuantizeUs.
Record family(double quantize, int n = 7) {
  std::vector<Row> rows;
  for (int i = 1; i <= 8; ++i) {
    for (const Row& one : quantized_rounds(128 * i, kTimeUs, kQuantizeUs * quantize, n)) {
      rows.push_back(one);
    }
  }
  return record(rows);
}

TEST(GateQuantize, ManySmallSlowDownsDoNotHide) {
  const Comparison comparison = compare(family(1), family(1.018), paired());
  EXPECT_EQ(count(comparison, Verdict::slower), 0);
  ASSERT_EQ(comparison.families.size(), 2U);
  EXPECT_EQ(comparison.families[0].direction, Direction::same);
  EXPECT_EQ(family_name(comparison.families[1]), "fp8 quantising");
  EXPECT_EQ(comparison.families[1].direction, Direction::slower);
  EXPECT_EQ(gate_exit_code(comparison, {}), ExitCode::slower);
  EXPECT_NEAR(geomean_ratio(comparison, Measure::quantize_us)->ratio, 1.018, 1e-9);
  EXPECT_NEAR(geomean_ratio(comparison)->ratio, 1, 1e-9);
}

TEST(GateQuantize, SlowerStandsWhereBothStagesShowIt) {
  EXPECT_EQ(suspects(compare(family(1), family(2), paired())).size(), 8U);
  EXPECT_TRUE(suspects(compare(family(1), family(1), paired())).empty());
  Comparison all = compare(family(1, 12), family(1.05, 12), paired());
  confirm(all, compare(family(1), family(1.05), paired()));
  EXPECT_EQ(count(all, Verdict::slower), 8);
  EXPECT_EQ(count(all, Direction::slower), 1);
  confirm(all, compare(family(1), family(1), paired()));
  EXPECT_EQ(count(all, Verdict::unsure), 8);
  EXPECT_EQ(count(all, Direction::slower), 0);
  EXPECT_EQ(all.cases[0].time->direction, Direction::same);
  EXPECT_TRUE(all.cases[0].reason.ends_with("; not confirmed: +0.0% when measured again"))
      << all.cases[0].reason;
}

}  // namespace
}  // namespace rooflash
