// The roofs of one card, measured: HBM rates and the units inside by own kernels, matrix products
// by cuBLAS.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>

#include "core/record.hpp"

namespace rooflash {

struct RoofDevice {
  std::string device;  // "cuda:0"
  int sm = 0;          // compute capability, 90 for 9.0
  int sm_count = 0;
  std::int64_t l2_bytes = 0;
};

// About three seconds. Rates are medians of 12 runs; a product is the best of two sizes. A type
// without a product on this card has no entry.
Ceilings measure_ceilings(const RoofDevice& device, cudaStream_t stream);

// The roofs once the clock has settled under load; three to nine seconds a figure. `power_w` asks
// the board.
SustainedRoofs measure_sustained(const RoofDevice& device, cudaStream_t stream,
                                 const std::function<OptDouble()>& power_w);

}  // namespace rooflash
