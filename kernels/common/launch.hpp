// Error checks and static figures for kernel launches.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/record.hpp"

namespace rooflash {

// Throws Error with `what` and CUDA's own text unless `status` is cudaSuccess.
void check_launch(cudaError_t status, const char* what);

// Registers, spills, shared memory, code size, grid and waves of `function` launched with these
// sizes; raises its dynamic shared memory limit to `smem_bytes`. Throws NotBuiltError where this
// binary holds no code for the device.
Resources prepare_kernel(const void* function, int threads, std::int64_t smem_bytes,
                         std::int64_t grid, int sm_count);

}  // namespace rooflash
