// What the hardware counters say about the L2 flush. Skipped where they cannot be read.
#include <functional>
#include <memory>
#include <vector>

#include "device_case.hpp"
#include "harness.hpp"
#include "measure/counters.hpp"
#include "measure/l2_flush.hpp"
#include "measure/statistics.hpp"
#include "measure/timer.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

class HbmCounters : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    flush_ = std::make_unique<L2Flush>(flush_bytes(gpu().l2_bytes), gpu().stream);
    session_ = std::make_unique<CounterSession>(counter_target(0));
  }
  static void TearDownTestSuite() {
    session_.reset();
    flush_.reset();
  }
  void SetUp() override {
    const Counters probe = count(
        DType::bf16, [] {}, flush);
    for (const char* status : {"no_permission", "busy", "other_tool", "unavailable"}) {
      if (probe.status == status) GTEST_SKIP() << probe.status << ": " << probe.reason;
    }
  }

  // Of `launch`, which finds the caches as `prepare` leaves them.
  static Counters count(DType dtype, const std::function<void()>& prepare,
                        const std::function<void()>& launch) {
    return session_->measure(dtype, prepare, launch, {});
  }
  static void flush() { (*flush_)(gpu().stream); }

  static std::unique_ptr<L2Flush> flush_;
  static std::unique_ptr<CounterSession> session_;
};
std::unique_ptr<L2Flush> HbmCounters::flush_;
std::unique_ptr<CounterSession> HbmCounters::session_;

// 6 MiB of inputs, which any L2 of an sm_80 or newer holds besides outputs and workspace.
Problem problem_within_l2(const KernelVariant& kernel) {
  constexpr std::int64_t kTensorBytes = 2 << 20;
  Problem p = kernel.problem();
  p.batch = 2;
  p.seqlen_q = p.seqlen_kv = 256;
  p.heads_q = p.heads_kv = kTensorBytes / (p.batch * p.seqlen_q * p.headdim * size_bytes(p.dtype));
  return p;
}

TEST_F(HbmCounters, ColdRunsReadTheirInputsFromHbmAndWarmOnesDoNot) {
  for (const KernelVariant& kernel : forward_variants()) {
    if (!kernel.runs_here()) continue;
    const Problem p = problem_within_l2(kernel);
    SCOPED_TRACE(case_id(kernel.kernel->name, p));
    DeviceCase device(kernel.kernel, p);
    device.make_inputs(kSeed);
    device.run();
    const auto launch = [&] { device.launch()(gpu().stream); };
    const auto launch_twice = [&] {
      launch();
      launch();
    };
    // What a kernel asks L2 to keep, it keeps all the better the more often it is read.
    for (int i = 0; i < 100; ++i) {
      flush();
      launch();
    }
    const Counters cold = count(p.dtype, flush, launch);
    const Counters warm = count(p.dtype, launch_twice, launch);
    ASSERT_EQ(cold.status, "ok") << cold.reason;
    ASSERT_EQ(warm.status, "ok") << warm.reason;
    const auto inputs = static_cast<double>(device.input_bytes());
    EXPECT_GE(*cold.hbm_read_bytes, 0.9 * inputs);
    EXPECT_LE(*warm.hbm_read_bytes, 0.1 * inputs);
  }
}

// Dirty lines that outlive the flush would be written back on the time of the launch after it.
TEST_F(HbmCounters, FlushLeavesNoDirtyLines) {
  const DeviceBuffer dirty(16 << 20);
  const L2Flush reader(16 << 20, gpu().stream);  // a kernel that only reads
  const auto write_then_flush = [&] {
    ROOFLASH_CUDA(cudaMemsetAsync(dirty.get(), 1, dirty.bytes(), gpu().stream));
    flush();
  };
  const Counters counted = count(DType::bf16, write_then_flush, [&] { reader(gpu().stream); });
  ASSERT_EQ(counted.status, "ok") << counted.reason;
  EXPECT_GE(*counted.hbm_read_bytes, 0.9 * static_cast<double>(reader.bytes()));
  EXPECT_LT(*counted.hbm_write_bytes, 0.05 * static_cast<double>(flush_bytes(gpu().l2_bytes)));
}

// The counters stay enabled between the captures of a run, and rows are timed there.
TEST_F(HbmCounters, TimesBetweenCapturesAreThoseWithoutCounters) {
  Problem p;
  p.dtype = DType::bf16;
  p.batch = 2;
  p.heads_q = p.heads_kv = 16;
  p.seqlen_q = p.seqlen_kv = 2048;
  p.headdim = p.headdim_v = 64;
  DeviceCase device(find_kernel("fa2"), p);
  device.make_inputs(kSeed);
  Timer timer(gpu().stream, flush_bytes(gpu().l2_bytes), gpu().limits.sm_count);
  RunOptions options;
  options.min_samples = options.max_samples = 50;
  const auto time_us = [&] {
    timer.warm_up(device.launch(), options);
    return timer.measure(device.launch(), options).time_us.median;
  };
  std::vector<double> without;
  std::vector<double> between;
  for (int round = 0; round < 3; ++round) {  // in turns: a drifting clock meets both alike
    session_.reset();
    without.push_back(time_us());
    session_ = std::make_unique<CounterSession>(counter_target(0));
    const Counters counted = count(p.dtype, flush, [&] { device.launch()(gpu().stream); });
    ASSERT_EQ(counted.status, "ok") << counted.reason;
    between.push_back(time_us());
  }
  EXPECT_NEAR(median(between), median(without), 0.03 * median(without));
}

}  // namespace
}  // namespace rooflash
