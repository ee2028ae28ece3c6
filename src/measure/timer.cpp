#include "measure/timer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "gpu/check.hpp"
#include "gpu/nvtx.hpp"
#include "measure/statistics.hpp"

namespace rooflash {
namespace {

constexpr double kChunkS = 0.01;  // of launches between two looks at the clock
// The power cap of an H200 answers 50 to 200 ms after a load begins: a shorter warm-up ends now
// before, now after it.
constexpr double kLeastWarmUpS = 0.2;
constexpr double kSettled = 0.01;          // spread of the last chunks' clocks
constexpr std::size_t kSettledChunks = 4;  // in a row
constexpr double kUnsettled = 0.02;        // spread of a row's clock that is flagged
constexpr double kBatchS = 0.1;            // a batch is no longer than this, unless one sample is
constexpr double kFillerS = 0.004;         // covers the host's reading of a sustained batch
// At the power cap the clock wanders over a second or so. Sustained samples come from a longer
// span, a batch at a time, with the same kernel between them.
constexpr double kSustainedSpanS = 3;
constexpr double kSustainedBatchEveryS = 0.2;
constexpr int kQueueLimit = 200;        // launches queued without a synchronisation
constexpr double kLeastLaunchS = 1e-7;  // that an estimate can be
constexpr std::int64_t kUncounted = std::numeric_limits<std::int64_t>::max();

class Stopwatch {
 public:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void summarise(Timing& timing) {
  TimeUs& time = timing.time_us;
  const Interval ci = median_ci95(time.samples);
  time.median = median(time.samples);
  time.ci95_low = ci.low;
  time.ci95_high = ci.high;
  time.min = *std::min_element(time.samples.begin(), time.samples.end());
  time.n = static_cast<std::int64_t>(time.samples.size());

  Clock& clock = timing.clock_mhz;
  if (clock.samples.size() != time.samples.size()) {
    clock.samples.clear();  // parallel or not at all
    return;
  }
  std::vector<double> cycles;
  for (std::size_t i = 0; i < time.samples.size(); ++i) {
    cycles.push_back(time.samples[i] * clock.samples[i]);  // us x MHz
  }
  timing.cycles_median = median(cycles);
  clock.median = median(clock.samples);
  clock.min = *std::min_element(clock.samples.begin(), clock.samples.end());
  clock.max = *std::max_element(clock.samples.begin(), clock.samples.end());
  if (relative_spread(clock.samples) > kUnsettled) timing.flags.emplace_back("clock_unsettled");
}

}  // namespace

Timer::Timer(cudaStream_t stream, std::int64_t flush_bytes, int sm_count)
    : stream_(stream), flush_(flush_bytes, stream), stamps_(2 * kBatch, sm_count) {
  events_.resize(2 * kBatch + 1);
  for (cudaEvent_t& event : events_) ROOFLASH_CUDA(cudaEventCreate(&event));
  ROOFLASH_CUDA(cudaEventCreate(&start_));
  // Loads every kernel now: loading one later, behind a block, would wait for the block's end.
  block_.block(stream_);
  block_.release();
  flush_(stream_);
  stamps_.stamp(0, stream_);
  ROOFLASH_CUDA(cudaStreamSynchronize(stream_));
}

Timer::~Timer() {
  for (const cudaEvent_t event : events_) (void)cudaEventDestroy(event);
  (void)cudaEventDestroy(start_);
}

std::int64_t Timer::warm_up(const Launch& launch, const RunOptions& options) {
  const NvtxRange range(NvtxPhase::warmup);
  const bool sustained = options.power == "sustained";
  // As samples are taken, so that they meet the clock that this load settles at. Sustained ones
  // have launches without a flush between them.
  const bool cold = options.l2 != "warm" && !sustained;
  const double at_least = sustained ? 2.0 : options.warmup_s.value_or(kLeastWarmUpS);
  const double at_most = sustained ? 10.0 : options.warmup_s.value_or(1.0);
  const Stopwatch loading;
  launch(stream_);
  ROOFLASH_CUDA(cudaStreamSynchronize(stream_));
  estimate_s_ = std::max(loading.seconds(), kLeastLaunchS);

  const Stopwatch watch;
  std::vector<double> clocks;
  std::int64_t launches = 1;
  std::int64_t count = 1;
  while (launches < options.warmup_launches.value_or(kUncounted)) {
    count = std::min(count, options.warmup_launches.value_or(kUncounted) - launches);
    const Stopwatch chunk;
    stamps_.stamp(0, stream_);
    for (std::int64_t i = 0; i < count; ++i) {
      if (cold) flush_(stream_);
      launch(stream_);
    }
    stamps_.stamp(1, stream_);
    ROOFLASH_CUDA(cudaStreamSynchronize(stream_));
    launches += count;
    estimate_s_ = std::max(chunk.seconds() / static_cast<double>(count), kLeastLaunchS);
    // Only chunks of full length: the clock over a few microseconds says nothing about settling.
    if (chunk.seconds() >= kChunkS / 2) clocks.push_back(stamps_.mhz(0, 1).value_or(0));
    const double elapsed = watch.seconds();
    const double next = options.warmup_launches ? kChunkS : std::min(kChunkS, at_most - elapsed);
    count = std::clamp(static_cast<int>(next / estimate_s_), 1, kQueueLimit);

    if (options.warmup_launches) continue;
    if (elapsed >= at_most) break;
    if (elapsed < at_least) continue;
    const std::size_t last = std::min(clocks.size(), kSettledChunks);
    const bool short_kernel = clocks.empty();  // even kQueueLimit launches fill no chunk
    const bool settled =
        last == kSettledChunks && relative_spread(std::span(clocks).last(last)) < kSettled;
    if (settled || short_kernel) break;
  }
  return launches;
}

std::int64_t Timer::launch_until(const Launch& launch, const std::function<bool()>& done) {
  const int chunk = std::clamp(static_cast<int>(kChunkS / estimate_s_), 1, kQueueLimit);
  std::int64_t launches = 0;
  for (std::size_t n = 0; n == 0 || !done(); ++n) {
    for (int i = 0; i < chunk; ++i) launch(stream_);
    launches += chunk;
    // A chunk ahead of the device and no more, so that the end comes soon after `done`.
    ROOFLASH_CUDA(cudaEventRecord(events_[n % 2], stream_));
    if (n > 0) ROOFLASH_CUDA(cudaEventSynchronize(events_[(n - 1) % 2]));
  }
  return launches;
}

double Timer::keep_busy(const Launch& launch, const std::function<bool()>& done) {
  ROOFLASH_CUDA(cudaEventRecord(start_, stream_));
  const std::int64_t launches = launch_until(launch, done);
  ROOFLASH_CUDA(cudaEventRecord(events_.back(), stream_));
  ROOFLASH_CUDA(cudaEventSynchronize(events_.back()));
  float ms = 0;
  ROOFLASH_CUDA(cudaEventElapsedTime(&ms, start_, events_.back()));
  return 1e3 * static_cast<double>(ms) / static_cast<double>(launches);
}

void Timer::queue_sample(int slot, const Launch& launch, bool cold) {
  const std::size_t event = 2 * static_cast<std::size_t>(slot);
  if (cold) {
    flush_(stream_);
  } else {
    launch(stream_);
    launch(stream_);
  }
  stamps_.stamp(2 * slot, stream_);
  ROOFLASH_CUDA(cudaEventRecord(events_[event], stream_));
  launch(stream_);
  ROOFLASH_CUDA(cudaEventRecord(events_[event + 1], stream_));
  stamps_.stamp(2 * slot + 1, stream_);
}

void Timer::queue_filler(const Launch& launch, double seconds) {
  const int count = std::clamp(static_cast<int>(std::ceil(seconds / estimate_s_)), 1, kQueueLimit);
  for (int i = 0; i < count; ++i) launch(stream_);
}

bool Timer::take_batch(int count, const Launch& launch, const RunOptions& options, bool held,
                       Timing& timing) {
  const bool sustained = options.power == "sustained";
  if (held) block_.block(stream_);
  try {
    for (int i = 0; i < count; ++i) queue_sample(i, launch, options.l2 != "warm");
  } catch (...) {
    block_.release();
    throw;
  }
  ROOFLASH_CUDA(cudaEventRecord(events_.back(), stream_));
  if (held) block_.release();
  if (sustained) queue_filler(launch, kFillerS);  // the card must not idle while the host reads
  ROOFLASH_CUDA(cudaEventSynchronize(events_.back()));
  if (held && block_.timed_out()) return false;
  for (int i = 0; i < count; ++i) {
    float ms = 0;
    const std::size_t event = 2 * static_cast<std::size_t>(i);
    ROOFLASH_CUDA(cudaEventElapsedTime(&ms, events_[event], events_[event + 1]));
    timing.time_us.samples.push_back(1e3 * static_cast<double>(ms));
    ROOFLASH_CUDA(cudaEventElapsedTime(&ms, start_, events_[event]));
    timing.sample_start_us.push_back(1e3 * static_cast<double>(ms));
    if (const auto mhz = stamps_.mhz(2 * i, 2 * i + 1)) timing.clock_mhz.samples.push_back(*mhz);
  }
  return true;
}

Timing Timer::measure(const Launch& launch, const RunOptions& options) {
  const NvtxRange range(NvtxPhase::timed);
  const StopRule rule{.min_samples = options.min_samples,
                      .max_samples = options.max_samples,
                      .max_noise = options.max_noise,
                      .max_time_s = options.max_time_s};
  Timing timing;
  timing.time_us.l2 = options.l2;
  timing.time_us.power = options.power;
  timing.time_us.timer = "event";
  ROOFLASH_CUDA(cudaEventRecord(start_, stream_));
  ROOFLASH_CUDA(cudaEventSynchronize(start_));
  timing.start = std::chrono::steady_clock::now();
  const bool sustained = options.power == "sustained";
  // Busy from here on, so the host's launches run ahead of the GPU and need no block.
  bool held = !sustained;
  const std::int64_t fit = static_cast<std::int64_t>(kBatchS / estimate_s_);
  const std::int64_t batch = std::clamp<std::int64_t>(fit, 1, kBatch);

  const Stopwatch watch;
  double next_batch_s = 0;
  while (timing.time_us.stopped_by.empty()) {
    if (sustained) {
      launch_until(launch, [&] { return watch.seconds() >= next_batch_s; });
      next_batch_s += kSustainedBatchEveryS;
    }
    const std::int64_t left =
        options.max_samples - static_cast<std::int64_t>(timing.time_us.samples.size());
    const int count = static_cast<int>(std::clamp<std::int64_t>(left, 1, batch));
    if (!take_batch(count, launch, options, held, timing)) {
      held = false;
      timing.flags.emplace_back("unheld");
      continue;
    }
    const double elapsed = watch.seconds();
    if (sustained && elapsed < kSustainedSpanS && count < left) continue;
    timing.time_us.stopped_by = rule.fired(timing.time_us.samples, elapsed);
  }
  ROOFLASH_CUDA(cudaStreamSynchronize(stream_));
  summarise(timing);
  return timing;
}

}  // namespace rooflash
