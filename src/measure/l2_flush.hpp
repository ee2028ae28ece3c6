// Empties the L2 cache of a case's data, so that the next launch finds all of it in HBM.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "gpu/check.hpp"

namespace rooflash {

// Of a buffer whose read empties an L2 of `l2_bytes`: twice as large, since caches do not replace
// strictly the oldest line.
constexpr std::int64_t flush_bytes(std::int64_t l2_bytes) {
  return 2 * l2_bytes;
}

class L2Flush {
 public:
  // Holds a buffer of `bytes` on the current device.
  L2Flush(std::int64_t bytes, cudaStream_t stream);

  // Queues reads of the buffer that replace all lines, those that are to be kept longest too.
  // Reading, unlike writing, leaves no dirty lines whose write-back would fall into the timed
  // window.
  void operator()(cudaStream_t stream) const;
  std::int64_t bytes() const { return static_cast<std::int64_t>(buffer_.bytes()); }

 private:
  DeviceBuffer buffer_;
};

}  // namespace rooflash
