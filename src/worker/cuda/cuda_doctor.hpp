// Whether one GPU is fit to be measured on, and what to do where it is not.
#pragma once

#include <vector>

#include "core/record.hpp"
#include "gpu/nvml.hpp"
#include "measure/counters.hpp"
#include "measure/timer.hpp"
#include "worker/backend.hpp"

namespace rooflash {

// Takes about a second: the counters are proved with a copy and a matrix product of known size.
std::vector<DoctorCheck> check_device(const DeviceInfo& device, const Nvml& nvml,
                                      CounterSession& counters, const Timer& timer,
                                      cudaStream_t stream);

}  // namespace rooflash
