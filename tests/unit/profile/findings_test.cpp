// Each rule: it speaks on figures that call for it, with the evidence and a gain that was worked
// out by hand, and is silent on good figures and on missing ones.
#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.hpp"

namespace rooflash {
namespace {

const Finding* find_by(const std::vector<Finding>& findings, const std::string& words) {
  for (const Finding& finding : findings) {
    if (finding.what.find(words) != std::string::npos) return &finding;
  }
  return nullptr;
}

// A kernel with nothing to complain about.
Figures good() {
  return {{"memory.hbm_pct", 30},
          {"memory.hbm_read_bytes", 7e7},
          {"memory.hbm_write_bytes", 3e7},
          {"memory.l2_to_sm_pct", 40},
          {"memory.l2_hit_pct", 90},
          {"memory.local_load_sectors", 0},
          {"memory.local_store_sectors", 0},
          {"memory.load_sectors_per_request", 16},
          {"memory.store_sectors_per_request", 4},
          {"compute.tensor_pipe_pct", 85},
          {"compute.xu_pipe_pct", 40},
          {"compute.fma_pipe_pct", 20},
          {"compute.issue_pct", 40},
          {"compute.occupancy_pct", 12},
          {"compute.tensor_ops_bf16_wgmma", 1e12},
          {"compute.sm_cycles_mean", 1000},
          {"compute.sm_cycles_min", 990},
          {"compute.sm_cycles_max", 1010},
          {"stalls.scheduler_warps", 2},
          {"stalls.warps_per_issue", 4},
          {"stalls.stall_selected", 1},
          {"stalls.stall_wait", 0.5},
          {"smem.smem_pct", 60},
          {"smem.smem_wavefronts", 1e6},
          {"smem.smem_conflicts", 1e3}};
}

Profile with(const Figures& changed) {
  Figures figures = good();
  for (const auto& [key, value] : changed) figures[key] = value;
  return profile_of(figures);
}

TEST(Findings, AGoodKernelIsAtItsLimitAndNothingElse) {
  const std::vector<Finding> findings = with({}).findings;
  ASSERT_EQ(findings.size(), 1U) << findings[1].what;
  EXPECT_EQ(findings[0].what, "At its limit: the tensor cores");
  EXPECT_EQ(findings[0].evidence, "tensor_pipe_pct 85 %, smem_pct 60 %, l2_to_sm_pct 40 %");
  EXPECT_FALSE(findings[0].gain_pct);
}

TEST(Findings, NothingCountedNothingSaid) {
  Profile none = profile_of({});
  none.row.resources = {};
  EXPECT_TRUE(find(none).empty());
}

TEST(Findings, TheLimitNeedsBothSides) {
  const std::vector<Finding> only_smem = profile_of({{"smem.smem_pct", 95}}).findings;
  EXPECT_EQ(find_by(only_smem, "At its limit"), nullptr);
  const std::vector<Finding> near = with({{"compute.tensor_pipe_pct", 70}}).findings;
  const Finding* nearest = find_by(near, "Nearest");
  ASSERT_NE(nearest, nullptr);
  EXPECT_DOUBLE_EQ(*nearest->gain_pct, 30);
  EXPECT_EQ(nearest->formula, "1 - tensor_pipe_pct / 100");
  const std::vector<Finding> none =
      with({{"compute.tensor_pipe_pct", 50}, {"smem.smem_pct", 20}}).findings;
  const Finding* idle = find_by(none, "No unit is busy");
  ASSERT_NE(idle, nullptr);
  EXPECT_DOUBLE_EQ(*idle->gain_pct, 50);
}

TEST(Findings, HbmTraffic) {
  // 4e8 bytes for 1e8 compulsory; HBM is busy 80 % of the time: 60 % of it for excess bytes.
  const Figures bound{
      {"memory.hbm_read_bytes", 3e8}, {"memory.hbm_write_bytes", 1e8}, {"memory.hbm_pct", 80}};
  const std::vector<Finding> findings = with(bound).findings;
  const Finding* found = find_by(findings, "4 times the compulsory");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(*found->gain_pct, 60);
  EXPECT_NE(found->evidence.find("L2 hits 90 %"), std::string::npos);
  Figures idle = bound;
  idle["memory.hbm_pct"] = 30;
  const std::vector<Finding> without_gain = with(idle).findings;
  found = find_by(without_gain, "4 times the compulsory");
  ASSERT_NE(found, nullptr);
  EXPECT_FALSE(found->gain_pct) << "HBM is not what the time goes into";
}

TEST(Findings, MaskedAndPaddedTensorWork) {
  // 1.25e12 executed for 1e12: a fifth of 85 %.
  const std::vector<Finding> findings = with({{"compute.tensor_ops_bf16_wgmma", 1.25e12}}).findings;
  const Finding* found = find_by(findings, "padding or masked");
  ASSERT_NE(found, nullptr);
  EXPECT_NEAR(*found->gain_pct, 17, 1e-9);
  // Two kinds of instructions are one sum.
  EXPECT_NE(find_by(with({{"compute.tensor_ops_bf16_mma", 0.25e12}}).findings, "padding"), nullptr);
}

TEST(Findings, Waves) {
  Profile profile = with({});
  profile.row.resources.waves = 1.25;
  const std::vector<Finding> tail = find(profile);
  const Finding* found = find_by(tail, "last wave");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(*found->gain_pct, 37.5);
  profile.row.resources.waves = 0.4;
  const std::vector<Finding> small = find(profile);
  found = find_by(small, "does not fill");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(*found->gain_pct, 60);
  profile.row.resources.waves = 20.1;  // 4 % of the time
  EXPECT_EQ(find(profile).size(), 1U);
}

TEST(Findings, BalanceOfTheSms) {
  const std::vector<Finding> findings = with({{"compute.sm_cycles_max", 2000}}).findings;
  const Finding* found = find_by(findings, "do not finish together");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(*found->gain_pct, 50);
}

TEST(Findings, OccupancyOnlyWhereLatencyIsNotHidden) {
  const Figures waiting{{"compute.tensor_pipe_pct", 30},
                        {"compute.tensor_ops_bf16_wgmma", 0},
                        {"compute.tensor_ops_bf16_mma", 1e12}};
  const std::vector<Finding> findings = with(waiting).findings;
  const Finding* found = find_by(findings, "Few warps");
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->what, "Few warps to hide latency: 2 blocks on an SM, limited by shared memory");
  EXPECT_NE(found->evidence.find("registers allow 3, shared memory 2"), std::string::npos);
  Figures by_design = waiting;
  by_design["memory.tma_load_bytes"] = 1e8;  // producer warps
  EXPECT_EQ(find_by(with(by_design).findings, "Few warps"), nullptr);
}

TEST(Findings, AchievedOccupancyFarBelowTheTheoretical) {
  Profile profile = with({{"compute.occupancy_pct", 20}});
  profile.occupancy->pct = 50;
  EXPECT_NE(find_by(find(profile), "Fewer warps than fit"), nullptr);
}

TEST(Findings, Spills) {
  const std::vector<Finding> findings = with({{"memory.local_load_sectors", 500}}).findings;
  EXPECT_NE(find_by(findings, "Registers spill"), nullptr);
  Profile profile = with({});
  profile.row.resources.spill_bytes = 16;
  EXPECT_NE(find_by(find(profile), "Registers spill"), nullptr);
}

TEST(Findings, BankConflicts) {
  const std::vector<Finding> findings =
      with({{"smem.smem_conflicts", 5e5}, {"smem.smem_load_conflicts", 4e5}}).findings;
  const Finding* found = find_by(findings, "Bank conflicts");
  ASSERT_NE(found, nullptr);
  EXPECT_DOUBLE_EQ(*found->gain_pct, 30);  // half of 60 %
  EXPECT_EQ(found->evidence, "50 % of 1e+06 wavefronts: 80 % by loads");
}

TEST(Findings, TheTwoWorstStalls) {
  // 4 cycles an instruction, 2 warps: a scheduler issues in half of its cycles.
  const std::vector<Finding> findings = with({{"stalls.stall_long_scoreboard", 2.4},
                                              {"stalls.stall_barrier", 0.8},
                                              {"stalls.stall_not_selected", 3}})
                                            .findings;
  const Finding* loads = find_by(findings, "global or local memory");
  ASSERT_NE(loads, nullptr);
  EXPECT_DOUBLE_EQ(*loads->gain_pct, 50) << "no more than the cycles without an issue";
  const Finding* barrier = find_by(findings, "barrier");
  ASSERT_NE(barrier, nullptr);
  EXPECT_DOUBLE_EQ(*barrier->gain_pct, 20);
  EXPECT_EQ(find_by(findings, "is ready while"), nullptr) << "no fault";
  EXPECT_EQ(findings[1].what, loads->what) << "the largest gain first, after the limit";
}

TEST(Findings, ScatteredAccess) {
  const std::vector<Finding> findings = with({{"memory.store_sectors_per_request", 32}}).findings;
  EXPECT_NE(find_by(findings, "Global stores are scattered"), nullptr);
  EXPECT_EQ(find_by(findings, "Global loads"), nullptr);
}

TEST(Findings, EveryOneSaysWhatToDo) {
  const std::vector<Finding> findings = with({{"compute.tensor_pipe_pct", 30},
                                              {"smem.smem_conflicts", 5e5},
                                              {"memory.local_load_sectors", 1},
                                              {"memory.hbm_read_bytes", 1e9},
                                              {"compute.sm_cycles_max", 2000},
                                              {"stalls.stall_wait", 3}})
                                            .findings;
  EXPECT_GE(findings.size(), 6U);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.what.empty());
    EXPECT_FALSE(finding.evidence.empty()) << finding.what;
    EXPECT_FALSE(finding.next_step.empty()) << finding.what;
    EXPECT_EQ(finding.gain_pct.has_value(), !finding.formula.empty()) << finding.what;
    EXPECT_LE(finding.gain_pct.value_or(0), 100) << finding.what;
  }
}

}  // namespace
}  // namespace rooflash
