// Empties the L2 cache of a case's data, so that the next launch finds all of it in HBM.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/check.hpp"

namespace rooflash {

class L2Flush {
 public:
  // Holds a buffer of twice the L2 of the current device.
  explicit L2Flush(std::int64_t l2_bytes, cudaStream_t stream);

  // Queues a read of the whole buffer. Reading, unlike writing, leaves no dirty lines whose
  // write-back would fall into the timed window.
  void operator()(cudaStream_t stream) const;
  std::int64_t bytes() const { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  DeviceBuffer buffer_;
};

}  // namespace rooflash
