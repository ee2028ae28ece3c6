// The roofs of one card, measured: HBM rates by own kernels, tensor rates by cuBLAS.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "core/record.hpp"

namespace rooflash {

// About two seconds. Rates are medians of 12 runs, the best of a few launch grids (HBM) or of two
// sizes (GEMM); a copy counts the bytes read and the bytes written. A type without a GEMM on this
// card has no entry. Allocates two buffers of 4 GiB, or of a third of the free memory if that is
// less.
Ceilings measure_ceilings(const std::string& device, int sm_count, cudaStream_t stream);

}  // namespace rooflash
