// Times a launch: CUDA events in a stream that is held until everything is queued.
//
// One sample in the stream: [flush] [clock stamp] [event] launch [event] [clock stamp].
#pragma once

#include <cuda_runtime.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "kernel.hpp"
#include "measure/block_stream.hpp"
#include "measure/clock_stamp.hpp"
#include "measure/l2_flush.hpp"
#include "worker/protocol.hpp"

namespace rooflash {

struct Timing {
  TimeUs time_us;
  Clock clock_mhz;  // samples parallel to time_us.samples; empty where no stamp pair matched
  OptDouble cycles_median;                      // median of time x clock
  std::chrono::steady_clock::time_point start;  // when the measurement began, on the host
  std::vector<double> sample_start_us;          // after `start`, parallel to time_us.samples
  std::vector<std::string> flags;               // clock_unsettled, unheld
};

class Timer {
 public:
  // `flush_bytes`: of the buffer that is read before a cold sample (l2_flush.hpp).
  Timer(cudaStream_t stream, std::int64_t flush_bytes, int sm_count);
  ~Timer();
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  // Runs `launch`, after a flush where samples come after one, for as long or as often as `options`
  // say, else until the SM clock settles: at least 200 ms and at most 1 s, with `sustained` power
  // at least 2 s and at most 10 s. The first launch, which loads the code, counts as one. Returns
  // their number.
  std::int64_t warm_up(const Launch& launch, const RunOptions& options);

  // Queues launches back to back until `done` (asked every 10 ms or so) says true. Microseconds a
  // launch.
  double keep_busy(const Launch& launch, const std::function<bool()>& done);

  // Samples until the stop rule of `options` fires; with `sustained` power for 3 s at least, unless
  // the most samples are there before.
  Timing measure(const Launch& launch, const RunOptions& options);

  void flush() const { flush_(stream_); }

 private:
  static constexpr int kBatch = 10;  // samples queued at once: far below the launch queue's 1024

  void queue_sample(int slot, const Launch& launch, bool cold);
  // Takes `count` samples into `timing`; false where the watchdog ended the block, and then none.
  bool take_batch(int count, const Launch& launch, const RunOptions& options, bool held,
                  Timing& timing);
  void queue_filler(const Launch& launch, double seconds);
  // Queues launches back to back until `done` says true, and leaves the last of them running. How
  // many there were.
  std::int64_t launch_until(const Launch& launch, const std::function<bool()>& done);

  cudaStream_t stream_;
  L2Flush flush_;
  BlockStream block_;
  ClockStamps stamps_;
  std::vector<cudaEvent_t> events_;
  cudaEvent_t start_ = nullptr;  // passes at Timing::start
  double estimate_s_ = 1e-3;     // of one launch, and its flush, from the last warm-up
};

}  // namespace rooflash
