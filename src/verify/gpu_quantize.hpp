// Quantising on the GPU: the inputs of an e4m3 problem in bf16, and what makes e4m3 values and
// scales of them. The same arithmetic as quantize.cpp, in the same order.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "gpu/check.hpp"
#include "kernel.hpp"

namespace rooflash {

class GpuQuantizer {
 public:
  // Makes the inputs of `seed`: Q, K and V shaped as `problem` says. Throws CudaError where the
  // device has less than memory_bytes(problem) left, UnsupportedError for head dims above 512.
  GpuQuantizer(const Problem& problem, std::uint64_t seed, CUstream_st* stream);
  static std::int64_t memory_bytes(const Problem& problem);

  // Q, K, V and the scales of `tensors`, by the problem's modes. Only enqueues; the same bits each
  // time.
  void launch(const Tensors& tensors, CUstream_st* stream) const;

  // Elements that the launches so far have cut down to e4m3's largest number, beyond what rounding
  // does. Synchronises the stream.
  std::int64_t saturated_elements(CUstream_st* stream) const;

 private:
  Problem problem_;
  DeviceBuffer q_, k_, v_;  // bf16
  DeviceBuffer sums_;       // of V, for its mean
  DeviceBuffer saturated_;  // one 64-bit count
};

}  // namespace rooflash
