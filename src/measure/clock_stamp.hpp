// The SM clock between two points of a stream, read on the GPU itself: cycles of an SM's counter
// over nanoseconds of the GPU's timer. No polling, and no guess at which moment a sensor meant.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <optional>

namespace rooflash {

class ClockStamps {
 public:
  // Room for `count` stamps.
  explicit ClockStamps(int count, int sm_count);
  ~ClockStamps();
  ClockStamps(const ClockStamps&) = delete;
  ClockStamps& operator=(const ClockStamps&) = delete;

  // Queues stamp `index`; about 2 us of GPU time.
  void stamp(int index, cudaStream_t stream);
  // MHz between stamps `first` and `second`, the median over the SMs that wrote both. Only after
  // the stream is synchronised. Empty where no SM wrote both.
  std::optional<double> mhz(int first, int second) const;

 private:
  static constexpr int kSlots = 512;  // SM ids beyond are ignored
  struct Stamp {
    std::uint64_t time_ns;
    std::uint64_t cycles;
  };
  Stamp* at(int index) const { return host_ + static_cast<std::ptrdiff_t>(index) * kSlots; }

  int count_;
  int sm_count_;
  Stamp* host_ = nullptr;  // [count][kSlots], mapped into the device, so that no copy is needed
  Stamp* device_ = nullptr;
};

}  // namespace rooflash
