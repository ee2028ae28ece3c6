#include <algorithm>
#include <cstring>
#include <vector>

#include "common/ptx/special.cuh"
#include "gpu/check.hpp"
#include "measure/clock_stamp.hpp"
#include "measure/statistics.hpp"

namespace rooflash {
namespace {

// One block per SM where the GPU is idle; which block lands where does not matter. Waits for a tick
// of the timer, so that a coarse timer (1 us on some cards) costs no accuracy.
__global__ void write_stamp(std::uint64_t* stamps, unsigned slots) {
  const unsigned slot = ptx::sm_id();
  if (slot >= slots) return;
  const std::uint64_t before = ptx::globaltimer_ns();
  std::uint64_t now = before;
  for (int spin = 0; spin < 1000 && now == before; ++spin) now = ptx::globaltimer_ns();
  const std::uint64_t cycles = static_cast<std::uint64_t>(clock64());
  stamps[2 * slot] = now;
  stamps[2 * slot + 1] = cycles;
}

}  // namespace

ClockStamps::ClockStamps(int count, int sm_count) : count_(count), sm_count_(sm_count) {
  const std::size_t bytes = sizeof(Stamp) * kSlots * static_cast<std::size_t>(count_);
  void* host = nullptr;
  ROOFLASH_CUDA(cudaHostAlloc(&host, bytes, cudaHostAllocMapped));
  host_ = static_cast<Stamp*>(host);
  std::memset(host, 0, bytes);
  void* device = nullptr;
  ROOFLASH_CUDA(cudaHostGetDevicePointer(&device, host, 0));
  device_ = static_cast<Stamp*>(device);
}

ClockStamps::~ClockStamps() {
  (void)cudaFreeHost(host_);
}

void ClockStamps::stamp(int index, cudaStream_t stream) {
  static_assert(sizeof(Stamp) == 2 * sizeof(std::uint64_t));
  // The slots still hold what an earlier use wrote; an SM that misses this one must not look
  // present.
  std::memset(static_cast<void*>(at(index)), 0, sizeof(Stamp) * kSlots);
  Stamp* const target = device_ + static_cast<std::ptrdiff_t>(index) * kSlots;
  write_stamp<<<static_cast<unsigned>(sm_count_), 1, 0, stream>>>(
      reinterpret_cast<std::uint64_t*>(target), kSlots);
  ROOFLASH_CUDA_LAUNCHED();
}

std::optional<double> ClockStamps::mhz(int first, int second) const {
  std::vector<double> clocks;
  for (int slot = 0; slot < kSlots; ++slot) {
    const Stamp& a = at(first)[slot];
    const Stamp& b = at(second)[slot];
    if (a.time_ns == 0 || b.time_ns <= a.time_ns || b.cycles <= a.cycles) continue;
    clocks.push_back(static_cast<double>(b.cycles - a.cycles) /
                     static_cast<double>(b.time_ns - a.time_ns) * 1e3);
  }
  if (clocks.empty()) return std::nullopt;
  return median(clocks);
}

}  // namespace rooflash
