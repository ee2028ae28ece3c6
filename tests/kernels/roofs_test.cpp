// The loops that measure roofs do the work they claim: held against the hardware counters.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "device_case.hpp"
#include "harness.hpp"
#include "measure/ceilings.hpp"
#include "measure/counters.hpp"
#include "measure/unit_roofs.hpp"

namespace rooflash {
namespace {

class Roofs : public testing::Test {
 protected:
  void SetUp() override {
    const Counters probe = count(DType::bf16, [] {});
    for (const char* status : {"no_permission", "busy", "other_tool", "unavailable"}) {
      if (probe.status == status) GTEST_SKIP() << probe.status << ": " << probe.reason;
    }
  }
  static Counters count(DType dtype, const std::function<void()>& run) {
    CounterSession session(counter_target(0));
    return session.measure(dtype, run, run, {});
  }
};

TEST_F(Roofs, TensorLoopsExecuteTheirOperations) {
  std::set<std::string> types;
  for (const TensorLoop& loop :
       tensor_loops(gpu().limits.sm, gpu().limits.sm_count, gpu().stream)) {
    types.insert(loop.type);
    if (loop.type == "tf32") continue;  // no counter of the set tells tf32 operations
    const DType dtype = *parse_dtype(loop.type);
    const Counters counted = count(dtype, loop.run);
    ASSERT_EQ(counted.status, "ok") << loop.type << ": " << counted.reason;
    EXPECT_NEAR(*counted.tensor_ops / loop.ops, 1, 1e-9) << loop.type;
    EXPECT_GT(*counted.tensor_pipe_pct, loop.warpgroup ? 90 : 50) << loop.type;
  }
  EXPECT_TRUE(types.contains("bf16"));
}

TEST_F(Roofs, TheL2LoopReadsFromL2) {
  const UnitLoop loop = l2_read_loop(gpu().l2_bytes, gpu().limits.sm_count, gpu().stream);
  const Counters counted = count(DType::bf16, loop.run);
  ASSERT_EQ(counted.status, "ok") << counted.reason;
  EXPECT_NEAR(*counted.sm_l2_read_bytes / loop.work, 1, 0.02);
  EXPECT_LT(*counted.hbm_read_bytes, 0.02 * loop.work);
  // Some requests of several SMs for the same line are merged on the way; most must reach L2.
  if (counted.l2_read_bytes) {
    EXPECT_GT(*counted.l2_read_bytes / loop.work, 0.8);
  }
}

TEST_F(Roofs, TheExponentialLoopKeepsItsUnitBusy) {
  const Counters counted = count(DType::bf16, exp_loop(gpu().limits.sm_count, gpu().stream).run);
  ASSERT_EQ(counted.status, "ok") << counted.reason;
  EXPECT_GT(*counted.xu_pipe_pct, 95);
}

// No figure is above what the card can do at its highest clock.
TEST_F(Roofs, AreWithinTheHardware) {
  const RoofDevice device{"cuda:0", gpu().limits.sm, gpu().limits.sm_count, gpu().l2_bytes};
  const Ceilings roofs = measure_ceilings(device, gpu().stream);
  ASSERT_TRUE(roofs.units && roofs.launch);
  for (const auto& [type, tflops] : roofs.gemm_tflops) {
    const auto found = roofs.units->tensor_tflops.find(type);
    if (found == roofs.units->tensor_tflops.end()) continue;
    EXPECT_GE(found->second, tflops) << type;
  }
  EXPECT_GE(*roofs.hbm_read_gbps, *roofs.hbm_copy_gbps);
  EXPECT_GT(*roofs.units->l2_read_gbps, *roofs.hbm_read_gbps);
  EXPECT_GT(*roofs.units->smem_read_gbps, *roofs.units->l2_read_gbps);
  EXPECT_GE(*roofs.units->fp32_tflops, roofs.gemm_tflops.at("fp32"));
  EXPECT_LT(*roofs.launch->graph_us, *roofs.launch->host_us);
}

}  // namespace
}  // namespace rooflash
