#include <cstdint>

#include "common/ptx/special.cuh"
#include "gpu/check.hpp"
#include "measure/block_stream.hpp"

namespace rooflash {
namespace {

__global__ void spin(volatile unsigned* released, volatile unsigned* timed_out,
                     std::uint64_t timeout_ns) {
  const std::uint64_t start = ptx::globaltimer_ns();
  while (*released == 0) {
    if (ptx::globaltimer_ns() - start > timeout_ns) {
      *timed_out = 1;
      __threadfence_system();
      return;
    }
    __nanosleep(200);
  }
}

}  // namespace

BlockStream::BlockStream() {
  void* host = nullptr;
  ROOFLASH_CUDA(cudaHostAlloc(&host, sizeof(Flags), cudaHostAllocMapped));
  flags_ = static_cast<volatile Flags*>(host);
  flags_->released = 1;
  flags_->timed_out = 0;
  void* device = nullptr;
  ROOFLASH_CUDA(cudaHostGetDevicePointer(&device, host, 0));
  device_flags_ = static_cast<Flags*>(device);
}

BlockStream::~BlockStream() {
  flags_->released = 1;  // a kernel still spinning must end before its flags go
  (void)cudaDeviceSynchronize();
  (void)cudaFreeHost(const_cast<Flags*>(flags_));
}

void BlockStream::block(cudaStream_t stream, double timeout_s) {
  flags_->released = 0;
  flags_->timed_out = 0;
  spin<<<1, 1, 0, stream>>>(&device_flags_->released, &device_flags_->timed_out,
                            static_cast<std::uint64_t>(timeout_s * 1e9));
  ROOFLASH_CUDA_LAUNCHED();
}

void BlockStream::release() {
  flags_->released = 1;
}

bool BlockStream::timed_out() const {
  return flags_->timed_out != 0;
}

}  // namespace rooflash
