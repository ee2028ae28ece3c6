// Times as the timer takes them.
#include "measure/timer.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <vector>

#include "device_case.hpp"
#include "harness.hpp"
#include "measure/statistics.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

constexpr std::array<std::int64_t, 3> kTimesTheDefault = {1, 2, 4};

Problem problem(std::int64_t batch, std::int64_t heads) {
  Problem p;
  p.dtype = DType::bf16;
  p.batch = batch;
  p.heads_q = p.heads_kv = heads;
  p.seqlen_q = p.seqlen_kv = 512;
  p.headdim = p.headdim_v = 64;
  return p;
}

// Of cold samples, in microseconds, for each length of the flush.
std::array<double, kTimesTheDefault.size()> cold_medians(const Launch& launch) {
  constexpr int kRounds = 3;
  RunOptions options;
  options.min_samples = options.max_samples = 50;

  std::vector<std::unique_ptr<Timer>> timers;
  for (const std::int64_t times : kTimesTheDefault) {
    timers.push_back(std::make_unique<Timer>(gpu().stream, times * flush_bytes(gpu().l2_bytes),
                                             gpu().limits.sm_count));
  }
  std::array<std::vector<double>, kTimesTheDefault.size()> samples;
  for (int round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < timers.size(); ++i) {  // in turns: a drifting clock meets all alike
      timers[i]->warm_up(launch, options);
      const Timing timing = timers[i]->measure(launch, options);
      EXPECT_EQ(std::ranges::count(timing.flags, "unheld"), 0);
      const std::vector<double>& taken = timing.time_us.samples;
      samples[i].insert(samples[i].end(), taken.begin(), taken.end());
    }
  }
  std::array<double, kTimesTheDefault.size()> medians{};
  std::ranges::transform(samples, medians.begin(),
                         [](const std::vector<double>& values) { return median(values); });
  return medians;
}

TEST(Timers, WarmUpAsLongOrAsOftenAsAsked) {
  Timer timer(gpu().stream, flush_bytes(gpu().l2_bytes), gpu().limits.sm_count);
  std::int64_t launched = 0;
  const DeviceBuffer buffer(1 << 20);
  const Launch launch = [&](CUstream_st* stream) {
    ROOFLASH_CUDA(cudaMemsetAsync(buffer.get(), 0, buffer.bytes(), stream));
    ++launched;
  };
  RunOptions options;
  for (const std::int64_t asked : {1, 7, 1000}) {
    options.warmup_launches = asked;
    launched = 0;
    EXPECT_EQ(timer.warm_up(launch, options), asked);
    EXPECT_EQ(launched, asked);
  }
  options.warmup_launches.reset();
  options.warmup_s = 0.03;
  launched = 0;
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(timer.warm_up(launch, options), launched);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  EXPECT_GE(took.count(), 0.03);
  EXPECT_LT(took.count(), 0.9);  // twenty times as asked where the clock does not settle
}

// The flush ends before the window begins: a longer one, whose read takes tens of microseconds
// more, is in no time.
TEST(Timers, LeaveTheFlushOutOfTheWindow) {
  const Kernel* const kernel = find_kernel("fa2");
  ASSERT_NE(kernel, nullptr);
  for (const Problem& p : {problem(1, 2), problem(32, 32)}) {  // some 17 and 290 us on an H200
    SCOPED_TRACE(case_id(kernel->name, p));
    DeviceCase device(kernel, p);
    device.make_inputs(kSeed);
    const std::array<double, kTimesTheDefault.size()> us = cold_medians(device.launch());
    for (std::size_t i = 1; i < us.size(); ++i) {
      EXPECT_NEAR(us[i], us[0], std::max(0.03 * us[0], 0.3))
          << "behind " << kTimesTheDefault[i] << " times the default flush";
    }
  }
}

}  // namespace
}  // namespace rooflash
