// Times the loops that measure roofs.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "core/record.hpp"
#include "measure/clock_stamp.hpp"

namespace rooflash {

// One run of a loop: the median of a few, or the state a load settles in.
struct RoofTime {
  double seconds = 0;
  OptDouble clock_mhz;  // of the SMs meanwhile
};

class RoofTimer {
 public:
  RoofTimer(cudaStream_t stream, int sm_count);
  ~RoofTimer();
  RoofTimer(const RoofTimer&) = delete;
  RoofTimer& operator=(const RoofTimer&) = delete;

  // Median of 12 runs after a pause and 3 more. The runs should be long against a launch, so that
  // the host keeps ahead.
  RoofTime burst(const std::function<void()>& run);

  // Runs back to back for 2 s at least, until the clock has settled, 8 s at most; then the mean of
  // a second. `during` is called in the middle of that second, with the device busy.
  RoofTime sustained(const std::function<void()>& run, const std::function<void()>& during);

  cudaStream_t stream() const { return stream_; }

 private:
  static constexpr int kRuns = 12;

  cudaStream_t stream_;
  ClockStamps stamps_;
  std::vector<cudaEvent_t> events_;
};

}  // namespace rooflash
