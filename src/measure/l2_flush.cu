#include <algorithm>

#include "common/ptx/l2.cuh"
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
constexpr std::int64_t kLineBytes = 128;

unsigned blocks_for(std::int64_t items) {
  return static_cast<unsigned>(std::clamp<std::int64_t>(items / kThreads, 1, kMaxBlocks));
}

// Lines that a kernel asked to be evicted last survive a read of any length. They give way to lines
// that ask for the same, which are then made ordinary ones again.
__global__ void replace_kept_lines(unsigned char* data, std::int64_t lines) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned seen = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < lines;
       i += step) {
#pragma unroll
    for (int sector = 0; sector < kLineBytes; sector += 32) {
      seen |= ptx::load_kept(data + i * kLineBytes + sector);
    }
  }
  if (seen != 0) data[0] = 1;  // as above
}
__global__ void release_lines(const unsigned char* data, std::int64_t lines) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < lines;
       i += step) {
    ptx::release_line(data + i * kLineBytes);
  }
}

}  // namespace

L2Flush::L2Flush(std::int64_t bytes, cudaStream_t stream)
    : buffer_(static_cast<std::size_t>(bytes)) {
  ROOFLASH_CUDA(cudaMemsetAsync(buffer_.get(), 0, buffer_.bytes(), stream));
}

void L2Flush::operator()(cudaStream_t stream) const {
  const std::int64_t lines = bytes() / 2 / kLineBytes;  // as many as L2 has
  auto* const data = buffer_.get<unsigned char>();
  replace_kept_lines<<<blocks_for(lines), kThreads, 0, stream>>>(data, lines);
  ROOFLASH_CUDA_LAUNCHED();
  release_lines<<<blocks_for(lines), kThreads, 0, stream>>>(data, lines);
  ROOFLASH_CUDA_LAUNCHED();
  const std::int64_t count = bytes() / static_cast<std::int64_t>(sizeof(uint4));
  read_all<<<blocks_for(count), kThreads, 0, stream>>>(buffer_.get<uint4>(), count);
  ROOFLASH_CUDA_LAUNCHED();
}

}  // namespace rooflash
