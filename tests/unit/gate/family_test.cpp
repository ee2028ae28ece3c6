// The family's mean, and the two stages of a paired gate.
#include "gate/family.hpp"

#include <gtest/gtest.h>

#include "fixture.hpp"
#include "gate/compare.hpp"
#include "gate/stages.hpp"

namespace rooflash {
namespace {

using fixture::record;
using fixture::rounds;
using fixture::row;

CompareRules paired() {
  CompareRules rules;
  rules.time.paired = true;
  return rules;
}

// `cases` cases of fa2 of `n` rounds, `factor` times 1 ms; those past `slow` at 1 ms.
Record family(int cases, double factor, int n = 7, int slow = 100) {
  std::vector<Row> rows;
  for (int i = 0; i < cases; ++i) {
    const double time = i < slow ? 1000 * factor : 1000;
    for (const Row& one : rounds("fa2", 128 * (i + 1), time, n)) rows.push_back(one);
  }
  return record(rows);
}

TEST(GateFamily, ManySmallSlowDownsDoNotHide) {
  const Comparison comparison = compare(family(8, 1), family(8, 1.018), paired());
  EXPECT_EQ(count(comparison, Verdict::slower), 0);
  ASSERT_EQ(comparison.families.size(), 1U);
  const FamilyShift& fa2 = comparison.families[0];
  EXPECT_EQ(fa2.case_ids.size(), 8U);
  EXPECT_NEAR(fa2.shift.ratio, 1.018, 1e-9);
  EXPECT_DOUBLE_EQ(fa2.threshold, 0.015);
  EXPECT_EQ(fa2.direction, Direction::slower);
  EXPECT_EQ(gate_exit_code(comparison, {}), ExitCode::slower);
}

TEST(GateFamily, SmallShiftIsSameAndFasterNeverFails) {
  const Comparison same = compare(family(8, 1), family(8, 1.01), paired());
  EXPECT_EQ(count(same, Direction::same), 1);
  EXPECT_EQ(gate_exit_code(same, {}), ExitCode::ok);
  const Comparison faster = compare(family(8, 1), family(8, 0.9), paired());
  EXPECT_EQ(count(faster, Direction::faster), 1);
  EXPECT_EQ(gate_exit_code(faster, {}), ExitCode::ok);
}

// Stored rounds share the shift of their day, which no mean takes out.
TEST(GateFamily, UnpairedKeepsTheThresholdOfTheCases) {
  const Comparison comparison = compare(family(8, 1), family(8, 1.04), {});
  ASSERT_EQ(comparison.families.size(), 1U);
  EXPECT_DOUBLE_EQ(comparison.families[0].threshold, 0.05);
  EXPECT_EQ(comparison.families[0].direction, Direction::same);
}

TEST(GateFamily, OneCaseIsNoFamily) {
  EXPECT_TRUE(compare(family(1, 1), family(1, 2), paired()).families.empty());
}

TEST(GateFamily, CasesBelowTheAbsoluteFloorAreLeftOut) {
  std::vector<Row> base = family(2, 1).rows;
  std::vector<Row> slow = family(2, 1).rows;
  for (const Row& one : rounds("fa2", 4096, 3.0, 7)) base.push_back(one);
  for (const Row& one : rounds("fa2", 4096, 3.5, 7)) slow.push_back(one);
  const Comparison comparison = compare(record(base), record(slow), paired());
  ASSERT_EQ(comparison.families.size(), 1U);
  EXPECT_EQ(comparison.families[0].case_ids.size(), 2U);
  EXPECT_EQ(comparison.families[0].direction, Direction::same);
}

TEST(GateFamily, OnlyRoundsThatAllItsCasesHave) {
  Record base = family(2, 1, 8);
  Record slow = family(2, 1.05, 8);
  std::erase_if(slow.rows,
                [](const Row& one) { return one.problem.seqlen_kv == 128 && one.round >= 7; });
  const Comparison comparison = compare(base, slow, paired());
  ASSERT_EQ(comparison.families.size(), 1U);
  EXPECT_EQ(comparison.families[0].candidate_us.size(), 7U);
}

TEST(GateFamily, SlowerClockIsUnsure) {
  Record base = family(4, 1);
  Record slow = family(4, 1.1);
  for (Row& one : base.rows) one.cycles_median = one.time_us->median * 1980;
  for (Row& one : slow.rows) one.cycles_median = one.time_us->median * 1800;
  const Comparison comparison = compare(base, slow, paired());
  ASSERT_EQ(comparison.families.size(), 1U);
  EXPECT_EQ(comparison.families[0].direction, Direction::unsure);
  EXPECT_EQ(gate_exit_code(comparison, {}), ExitCode::ok);
}

TEST(GateFamily, SimulatedFamilyNeedsOneRound) {
  const auto sim = [](double factor) {
    return record({row("fa2", 128, 100 * factor, 0, fixture::kSimulated),
                   row("fa2", 256, 200 * factor, 0, fixture::kSimulated)});
  };
  const Comparison comparison = compare(sim(1), sim(1.018), {});
  EXPECT_EQ(count(comparison, Verdict::same), 2);
  EXPECT_EQ(count(comparison, Direction::slower), 1);
}

TEST(GateConfirm, SuspectsAreWhatIsNotKnownToBeTheSame) {
  EXPECT_TRUE(suspects(compare(family(3, 1), family(3, 1), paired())).empty());
  const std::vector<std::string> one =
      suspects(compare(family(8, 1), family(8, 1.05, 7, 1), paired()));
  EXPECT_EQ(one, std::vector{family(1, 1).rows[0].case_id});
}

TEST(GateConfirm, AllCasesOfASuspectFamily) {
  EXPECT_EQ(suspects(compare(family(8, 1), family(8, 1.018), paired())).size(), 8U);
}

TEST(GateConfirm, SlowerStandsWhereBothStagesShowIt) {
  Comparison all = compare(family(3, 1, 12), family(3, 1.05, 12), paired());
  confirm(all, compare(family(3, 1), family(3, 1.05), paired()));
  EXPECT_EQ(count(all, Verdict::slower), 3);
  EXPECT_EQ(count(all, Direction::slower), 1);
}

TEST(GateConfirm, WhatIsNotShownAgainBecomesUnsure) {
  Comparison all = compare(family(3, 1, 12), family(3, 1.05, 12), paired());
  confirm(all, compare(family(3, 1), family(3, 1.0), paired()));
  EXPECT_EQ(count(all, Verdict::unsure), 3);
  EXPECT_EQ(count(all, Direction::unsure), 1);
  EXPECT_EQ(all.cases[0].reason, "not confirmed: +0.0% when measured again");
  EXPECT_EQ(gate_exit_code(all, {}), ExitCode::ok);
}

// Figures need no second look.
TEST(GateConfirm, SpillsStaySlower) {
  Record base = family(1, 1);
  Record spilled = family(1, 1);
  for (Row& one : base.rows) one.resources.spill_bytes = 0;
  for (Row& one : spilled.rows) one.resources.spill_bytes = 8;
  Comparison all = compare(base, spilled, paired());
  confirm(all, compare(family(1, 1), family(1, 1), paired()));
  EXPECT_EQ(count(all, Verdict::slower), 1);
}

TEST(GateConfirm, CasesNotMeasuredAgainStayAsTheyAre) {
  Comparison all = compare(family(3, 1), family(3, 1.05), paired());
  confirm(all, {});
  EXPECT_EQ(count(all, Verdict::slower), 3);
}

// Rounds 0 to 6 screen, 7 to 12 confirm.
TEST(GateStages, LaterRoundsOfSuspectsDecide) {
  const auto staged = [](double first, double later) {
    Record slow = family(2, first, 13);
    for (Row& one : slow.rows) {
      if (one.round >= 7) one.time_us->median *= later / first;
    }
    for (const Row& one : rounds("naive", 128, 1000, 13)) slow.rows.push_back(one);
    Record base = family(2, 1, 13);
    for (const Row& one : rounds("naive", 128, 1000, 13)) base.rows.push_back(one);
    return compare_in_stages(base, slow, paired(), 7);
  };
  const Comparison slower = staged(1.05, 1.05);
  EXPECT_EQ(count(slower, Verdict::slower), 2);
  EXPECT_EQ(slower.cases[0].time->base_us.size(), 13U);
  EXPECT_EQ(slower.cases[2].kernel, "naive");
  EXPECT_EQ(slower.cases[2].time->base_us.size(), 7U);  // was the same: not looked at again
  EXPECT_EQ(count(staged(1.10, 1.00), Verdict::slower), 0);
  EXPECT_EQ(count(staged(1.00, 1.10), Verdict::slower), 0);  // never a suspect
}

TEST(GateExceptions, RulesOfACase) {
  CompareRules rules;
  rules.exceptions = [](const Row& one, CaseRules& own) {
    if (one.problem.seqlen_kv == 128) own.time.threshold = 0.2;
    if (one.problem.seqlen_kv == 256) own.use_time = false;
    own.source = "rules.json:3";
  };
  const Comparison comparison = compare(family(3, 1), family(3, 1.1), rules);
  ASSERT_EQ(comparison.cases.size(), 2U);
  EXPECT_EQ(count(comparison, Verdict::slower), 1);  // 384
  EXPECT_EQ(count(comparison, Verdict::same), 1);    // 128
  EXPECT_EQ(comparison.left_out, 1);                 // 256: nothing is left to judge
  EXPECT_EQ(comparison.cases[0].rules, "rules.json:3");
}

TEST(GateExceptions, CasesLeftOutMustStillBeRight) {
  CompareRules rules;
  rules.exceptions = [](const Row&, CaseRules& own) {
    own.use_time = false;
    own.source = "rules.json:3";
  };
  EXPECT_EQ(gate_exit_code(compare(family(2, 1), family(2, 1), rules), {}), ExitCode::nothing_ran);
  Record wrong = family(2, 1);
  wrong.rows[0].status = Status::wrong;
  EXPECT_EQ(gate_exit_code(compare(family(2, 1), wrong, rules), {}), ExitCode::wrong);
}

TEST(GateExceptions, FiguresCanBeGivenRoomOrLeftOut) {
  Record base = family(1, 1);
  Record more = family(1, 1);
  for (Row& one : base.rows) one.resources = {128, 0, 1024, 128, 1, 1.0, 1000};
  for (Row& one : more.rows) one.resources = {168, 0, 1024, 128, 1, 1.0, 1080};
  CompareRules rules;
  EXPECT_EQ(compare(base, more, rules).cases[0].verdict, Verdict::slower);
  rules.figures["registers"] = std::nullopt;
  EXPECT_EQ(compare(base, more, rules).cases[0].reason, "code_bytes +8.0%");
  rules.figures["code_bytes"] = 0.1;
  EXPECT_EQ(compare(base, more, rules).cases[0].verdict, Verdict::same);
}

TEST(GateAcrossDevices, OnlyWhereAskedForAndNeverSimulatedAgainstMeasured) {
  Record other = family(1, 1);
  for (Row& one : other.rows) one.gpu = "NVIDIA H100";
  CompareRules rules;
  EXPECT_EQ(compare(other, family(1, 1.2), rules).cases[0].verdict, Verdict::not_comparable);
  rules.across_devices = true;
  const CaseComparison found = compare(other, family(1, 1.2), rules).cases[0];
  EXPECT_EQ(found.verdict, Verdict::slower);
  EXPECT_EQ(found.device_class, "NVIDIA H100, 132 SMs -> NVIDIA H200, 132 SMs");
  const Record simulated = record({row("fa2", 128, 1000, 0, fixture::kSimulated)});
  EXPECT_EQ(compare(simulated, family(1, 1), rules).cases[0].verdict, Verdict::not_comparable);
}

}  // namespace
}  // namespace rooflash
