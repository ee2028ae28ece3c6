// What a launch costs before its kernel does anything.
#pragma once

#include <cuda_runtime.h>

#include "core/record.hpp"

namespace rooflash {

// Medians, in a stream that is held until all is queued; a tenth of a second in all.
LaunchCosts measure_launch_costs(cudaStream_t stream);

}  // namespace rooflash
