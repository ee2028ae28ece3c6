#include <algorithm>

#include "measure/l2_flush.hpp"

namespace rooflash {
namespace {

// The buffer is all zero, so the store never happens; the compiler cannot know, and keeps the
// loads.
__global__ void read_all(uint4* data, std::int64_t count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned seen = 0;
#pragma unroll 4
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const uint4 value = data[i];
    seen |= value.x | value.y | value.z | value.w;
  }
  if (seen != 0) data[0].x = seen;
}

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 4096;

}  // namespace

L2Flush::L2Flush(std::int64_t bytes, cudaStream_t stream)
    : buffer_(static_cast<std::size_t>(bytes)) {
  ROOFLASH_CUDA(cudaMemsetAsync(buffer_.get(), 0, buffer_.bytes(), stream));
  // Lines a kernel asked to persist would survive the read; the limit of other work is not touched.
  const cudaError_t reset = cudaCtxResetPersistingL2Cache();
  if (reset != cudaErrorNotSupported) ROOFLASH_CUDA(reset);
  (void)cudaGetLastError();
}

void L2Flush::operator()(cudaStream_t stream) const {
  const std::int64_t count = bytes() / static_cast<std::int64_t>(sizeof(uint4));
  const std::int64_t blocks = std::clamp<std::int64_t>(count / kThreads, 1, kMaxBlocks);
  read_all<<<static_cast<unsigned>(blocks), kThreads, 0, stream>>>(buffer_.get<uint4>(), count);
  ROOFLASH_CUDA_LAUNCHED();
}

}  // namespace rooflash
