#include "measure/unit_roofs.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>

#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"
#include "common/ptx/shared.cuh"
#include "gpu/check.hpp"
#include "measure/gemm.hpp"

namespace rooflash {
namespace {

constexpr int kThreads = 512;
constexpr int kBlocksPerSm = 2;
constexpr int kChains = 8;  // independent values of a thread
constexpr int kIterations = 20000;

__global__ void __launch_bounds__(kThreads, kBlocksPerSm) exp_kernel(float* sums, int iterations) {
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) {
    x[i] = 0.1F * static_cast<float>(i) + 1e-3F * static_cast<float>(threadIdx.x);
  }
  for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
    for (float& value : x) value = ptx::ex2(-value);
  }
  float sum = 0.0F;
#pragma unroll
  for (const float value : x) sum += value;
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads, kBlocksPerSm)
    fp32_kernel(float* sums, int iterations, float factor, float offset) {
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (float& value : x) value = fmaf(value, factor, offset);
    }
  }
  float sum = 0.0F;
#pragma unroll
  for (const float value : x) sum += value;
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

__global__ void __launch_bounds__(kThreads, kBlocksPerSm) smem_kernel(float* sums, int iterations) {
  __shared__ uint4 tile[kThreads * 4];
  for (int i = 0; i < 4; ++i) {
    const unsigned n = threadIdx.x + static_cast<unsigned>(i) * kThreads;
    tile[n] = make_uint4(n * 2654435761U, n * 40503U, n ^ 0x9e3779b9U, ~n);
  }
  __syncthreads();
  const std::uint32_t mine = ptx::smem_address(tile + threadIdx.x);
  unsigned seen = 0;
  for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
      const uint4 value = ptx::load_shared_16(mine + (i % 4) * kThreads * 16);
      seen ^= value.x ^ value.y ^ value.z ^ value.w;
    }
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(seen);
}

constexpr int kL2Threads = 256;
constexpr int kL2InFlight = 8;  // loads of 16 bytes a thread has under way
constexpr int kL2BlocksPerSm = 3;

// Every block reads the whole buffer, each from another place on, so that requests for the same
// line do not meet on the way and L2 has to answer them all.
__global__ void __launch_bounds__(kL2Threads, kL2BlocksPerSm)
    l2_read_kernel(float* sums, const uint4* data, int tiles) {
  unsigned seen = 0;
  const int first = static_cast<int>((static_cast<std::int64_t>(blockIdx.x) * tiles) / gridDim.x);
  for (int i = 0; i < tiles; ++i) {
    const int tile = first + i < tiles ? first + i : first + i - tiles;
    const uint4* from =
        data + static_cast<std::int64_t>(tile) * kL2Threads * kL2InFlight + threadIdx.x;
    uint4 values[kL2InFlight];
#pragma unroll
    for (int n = 0; n < kL2InFlight; ++n) values[n] = __ldcg(from + n * kL2Threads);
#pragma unroll
    for (const uint4& value : values) seen |= value.x | value.y | value.z | value.w;
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = static_cast<float>(seen);
}

struct Grid {
  Grid(int sm_count, int per_sm, int threads)
      : blocks(static_cast<unsigned>(sm_count * per_sm)),
        sums(static_cast<std::size_t>(blocks) * static_cast<std::size_t>(threads) * sizeof(float)) {
  }
  unsigned blocks;
  DeviceBuffer sums;  // what the compiler must believe somebody reads
};

}  // namespace

UnitLoop exp_loop(int sm_count, cudaStream_t stream) {
  const auto grid = std::make_shared<Grid>(sm_count, kBlocksPerSm, kThreads);
  return {static_cast<double>(grid->blocks) * kThreads * kChains * kIterations, [=] {
            exp_kernel<<<grid->blocks, kThreads, 0, stream>>>(grid->sums.get<float>(), kIterations);
            ROOFLASH_CUDA_LAUNCHED();
          }};
}

UnitLoop fp32_loop(int sm_count, cudaStream_t stream) {
  const auto grid = std::make_shared<Grid>(sm_count, kBlocksPerSm, kThreads);
  return {2.0 * 4 * static_cast<double>(grid->blocks) * kThreads * kChains * kIterations, [=] {
            fp32_kernel<<<grid->blocks, kThreads, 0, stream>>>(grid->sums.get<float>(), kIterations,
                                                               0.999F, 1e-3F);
            ROOFLASH_CUDA_LAUNCHED();
          }};
}

UnitLoop smem_loop(int sm_count, cudaStream_t stream) {
  const auto grid = std::make_shared<Grid>(sm_count, kBlocksPerSm, kThreads);
  return {16.0 * static_cast<double>(grid->blocks) * kThreads * kChains * kIterations, [=] {
            smem_kernel<<<grid->blocks, kThreads, 0, stream>>>(grid->sums.get<float>(),
                                                               kIterations);
            ROOFLASH_CUDA_LAUNCHED();
          }};
}

UnitLoop l2_read_loop(std::int64_t l2_bytes, int sm_count, cudaStream_t stream) {
  constexpr std::int64_t kTileBytes = std::int64_t{kL2Threads} * kL2InFlight * 16;
  const auto tiles = static_cast<int>(std::max<std::int64_t>(1, l2_bytes / 4 / kTileBytes));
  const auto grid = std::make_shared<Grid>(sm_count, kL2BlocksPerSm, kL2Threads);
  const auto data = std::make_shared<DeviceBuffer>(static_cast<std::size_t>(tiles * kTileBytes));
  fill_random(DType::fp32, data->get(), tiles * kTileBytes / 4, 6, stream);
  return {static_cast<double>(grid->blocks) * tiles * static_cast<double>(kTileBytes), [=] {
            l2_read_kernel<<<grid->blocks, kL2Threads, 0, stream>>>(grid->sums.get<float>(),
                                                                    data->get<uint4>(), tiles);
            ROOFLASH_CUDA_LAUNCHED();
          }};
}

}  // namespace rooflash
