// The stream that everything of a device runs on.
#pragma once

#include <cuda_runtime.h>

#include "gpu/check.hpp"

namespace rooflash {

// Makes `ordinal` current, which creates its context, and owns a stream that no other stream
// orders.
class DeviceStream {
 public:
  explicit DeviceStream(int ordinal) {
    ROOFLASH_CUDA(cudaSetDevice(ordinal));
    ROOFLASH_CUDA(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  }
  ~DeviceStream() { (void)cudaStreamDestroy(stream_); }
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { ROOFLASH_CUDA(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace rooflash
