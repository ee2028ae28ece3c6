#include "measure/roof_timer.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "gpu/check.hpp"
#include "measure/statistics.hpp"

namespace rooflash {
namespace {

constexpr int kWarmUp = 3;
constexpr auto kPause = std::chrono::milliseconds(50);
constexpr double kSettleLeastS = 2.0;
constexpr double kSettleMostS = 8.0;
constexpr double kChunkS = 0.1;  // between two looks at the clock
constexpr double kWindowS = 1.0;
constexpr double kSettled = 0.02;  // spread of the last chunks' clocks
constexpr std::size_t kSettledChunks = 5;

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

RoofTimer::RoofTimer(cudaStream_t stream, int sm_count)
    : stream_(stream), stamps_(2, sm_count), events_(2 * kRuns) {
  for (cudaEvent_t& event : events_) ROOFLASH_CUDA(cudaEventCreate(&event));
}

RoofTimer::~RoofTimer() {
  for (const cudaEvent_t event : events_) (void)cudaEventDestroy(event);
}

RoofTime RoofTimer::burst(const std::function<void()>& run) {
  // The card gets its breath back, so that one figure's load does not lower the next one's clock.
  std::this_thread::sleep_for(kPause);
  for (int i = 0; i < kWarmUp; ++i) run();
  stamps_.stamp(0, stream_);
  for (std::size_t i = 0; i < kRuns; ++i) {
    ROOFLASH_CUDA(cudaEventRecord(events_[2 * i], stream_));
    run();
    ROOFLASH_CUDA(cudaEventRecord(events_[2 * i + 1], stream_));
  }
  stamps_.stamp(1, stream_);
  ROOFLASH_CUDA(cudaStreamSynchronize(stream_));
  std::vector<double> seconds;
  for (std::size_t i = 0; i < kRuns; ++i) {
    float ms = 0;
    ROOFLASH_CUDA(cudaEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1]));
    seconds.push_back(1e-3 * static_cast<double>(ms));
  }
  return {median(seconds), stamps_.mhz(0, 1)};
}

RoofTime RoofTimer::sustained(const std::function<void()>& run,
                              const std::function<void()>& during) {
  const double estimate = burst(run).seconds;
  RoofTime chunk;
  // Queues runs for about `seconds` and waits for their end.
  const auto busy = [&](double seconds, const std::function<void()>& meanwhile) {
    const int count = std::max(1, static_cast<int>(seconds / std::max(estimate, 1e-6)));
    stamps_.stamp(0, stream_);
    ROOFLASH_CUDA(cudaEventRecord(events_[0], stream_));
    const double begin = now_s();
    for (int i = 0; i < count; ++i) run();
    ROOFLASH_CUDA(cudaEventRecord(events_[1], stream_));
    stamps_.stamp(1, stream_);
    if (meanwhile) {
      const double wait = begin + 0.5 * seconds - now_s();
      if (wait > 0) std::this_thread::sleep_for(std::chrono::duration<double>(wait));
      meanwhile();
    }
    ROOFLASH_CUDA(cudaStreamSynchronize(stream_));
    float ms = 0;
    ROOFLASH_CUDA(cudaEventElapsedTime(&ms, events_[0], events_[1]));
    chunk = {1e-3 * static_cast<double>(ms) / count, stamps_.mhz(0, 1)};
  };
  const double begin = now_s();
  std::vector<double> clocks;
  while (now_s() - begin < kSettleMostS) {
    busy(kChunkS, {});
    clocks.push_back(chunk.clock_mhz.value_or(0));
    const std::size_t last = std::min(clocks.size(), kSettledChunks);
    if (now_s() - begin >= kSettleLeastS &&
        relative_spread(std::span(clocks).last(last)) < kSettled) {
      break;
    }
  }
  busy(kWindowS, during);
  return chunk;
}

}  // namespace rooflash
