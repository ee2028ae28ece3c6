#include "measure/hbm_roofs.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>

#include "gpu/check.hpp"
#include "measure/gemm.hpp"

namespace rooflash {
namespace {

constexpr int kThreads = 256;
constexpr int kInFlight = 8;  // 16-byte loads or stores a thread has under way
constexpr std::int64_t kTile = static_cast<std::int64_t>(kThreads) * kInFlight;  // in uint4

// Each block takes tiles of kTile values in turn; all loads of a tile are issued before the first
// value is used.
__global__ void copy_kernel(uint4* to, const uint4* from, std::int64_t tiles) {
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t first = tile * kTile + threadIdx.x;
    uint4 values[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) values[i] = __ldcs(from + first + i * kThreads);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) __stcs(to + first + i * kThreads, values[i]);
  }
}

// The data is random, so its bits are never all zero and the store never happens.
__global__ void read_kernel(uint4* to, const uint4* from, std::int64_t tiles) {
  unsigned seen = 0;
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t first = tile * kTile + threadIdx.x;
    uint4 values[kInFlight];
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) values[i] = __ldcs(from + first + i * kThreads);
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) {
      seen |= values[i].x | values[i].y | values[i].z | values[i].w;
    }
  }
  if (seen == 0) to[threadIdx.x].x = 1;
}

__global__ void write_kernel(uint4* to, const uint4* from, std::int64_t tiles) {
  const uint4 value = from[threadIdx.x];
  for (std::int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
    const std::int64_t first = tile * kTile + threadIdx.x;
#pragma unroll
    for (int i = 0; i < kInFlight; ++i) __stcs(to + first + i * kThreads, value);
  }
}

using StreamKernel = void (*)(uint4*, const uint4*, std::int64_t);

struct Buffers {
  DeviceBuffer from;
  DeviceBuffer to;
  std::int64_t tiles = 0;
  std::size_t size() const { return static_cast<std::size_t>(tiles * kTile) * sizeof(uint4); }
};

Buffers make_buffers(cudaStream_t stream) {
  std::size_t free = 0;
  std::size_t total = 0;
  ROOFLASH_CUDA(cudaMemGetInfo(&free, &total));
  const std::size_t bytes = std::min<std::size_t>(std::size_t{4} << 30, free / 3);
  Buffers buffers;
  buffers.tiles = static_cast<std::int64_t>(bytes / sizeof(uint4)) / kTile;
  if (buffers.tiles == 0) {
    throw Error(ExitCode::incomplete, "too little free GPU memory to measure its rate",
                "end other processes on the GPU");
  }
  const auto floats = static_cast<std::int64_t>(buffers.size() / sizeof(float));
  buffers.from = DeviceBuffer(buffers.size());
  buffers.to = DeviceBuffer(buffers.size());
  fill_random(DType::fp32, buffers.from.get(), floats, 3, stream);
  fill_random(DType::fp32, buffers.to.get(), floats, 4, stream);
  return buffers;
}

// GB/s of the fastest way to move `factor` times the buffer's bytes: `kernel` with its best grid,
// or the runtime's own `transfer` (none for a read).
double best_gbps(StreamKernel kernel, const std::function<void()>& transfer, const Buffers& buffers,
                 double factor, int sm_count, RoofTimer& timer) {
  double best = std::numeric_limits<double>::infinity();
  if (transfer) best = timer.burst(transfer).seconds;
  const std::int64_t all = std::min<std::int64_t>(buffers.tiles, std::numeric_limits<int>::max());
  for (const std::int64_t grid :
       {std::int64_t{sm_count} * 4, std::int64_t{sm_count} * 8, std::int64_t{sm_count} * 16, all}) {
    const auto run = [&] {
      kernel<<<static_cast<unsigned>(grid), kThreads, 0, timer.stream()>>>(
          buffers.to.get<uint4>(), buffers.from.get<uint4>(), buffers.tiles);
      ROOFLASH_CUDA_LAUNCHED();
    };
    best = std::min(best, timer.burst(run).seconds);
  }
  return factor * static_cast<double>(buffers.size()) / best * 1e-9;
}

}  // namespace

void measure_hbm(Ceilings& ceilings, int sm_count, RoofTimer& timer) {
  const Buffers buffers = make_buffers(timer.stream());
  const auto copy = [&] {
    ROOFLASH_CUDA(cudaMemcpyAsync(buffers.to.get(), buffers.from.get(), buffers.size(),
                                  cudaMemcpyDeviceToDevice, timer.stream()));
  };
  const auto set = [&] {
    ROOFLASH_CUDA(cudaMemsetAsync(buffers.to.get(), 0x5a, buffers.size(), timer.stream()));
  };
  ceilings.hbm_copy_gbps = best_gbps(copy_kernel, copy, buffers, 2, sm_count, timer);
  ceilings.hbm_read_gbps = best_gbps(read_kernel, {}, buffers, 1, sm_count, timer);
  ceilings.hbm_write_gbps = best_gbps(write_kernel, set, buffers, 1, sm_count, timer);
}

UnitLoop hbm_copy_loop(int sm_count, RoofTimer& timer) {
  const auto buffers = std::make_shared<Buffers>(make_buffers(timer.stream()));
  const cudaStream_t stream = timer.stream();
  const auto by_kernel = [=] {
    copy_kernel<<<static_cast<unsigned>(16 * sm_count), kThreads, 0, stream>>>(
        buffers->to.get<uint4>(), buffers->from.get<uint4>(), buffers->tiles);
    ROOFLASH_CUDA_LAUNCHED();
  };
  const auto by_runtime = [=] {
    ROOFLASH_CUDA(cudaMemcpyAsync(buffers->to.get(), buffers->from.get(), buffers->size(),
                                  cudaMemcpyDeviceToDevice, stream));
  };
  UnitLoop loop{2.0 * static_cast<double>(buffers->size()), by_kernel};
  if (timer.burst(by_runtime).seconds < timer.burst(by_kernel).seconds) loop.run = by_runtime;
  return loop;
}

}  // namespace rooflash
