// Asks one GPU what `rooflash doctor` wants to know; worker/doctor/ judges the answers.
#pragma once

#include <string>
#include <vector>

#include "measure/counters.hpp"
#include "measure/timer.hpp"
#include "worker/doctor/device_checks.hpp"

namespace rooflash {

// The cuDNN that `cudnn` runs from in this process.
VendorLibrary cudnn_library();

// Versions of the driver, the toolkit, cuBLAS and cuDNN; the rest of the state is the caller's.
DeviceState software_state();

// Proves the counters with a copy and a matrix product of known size, in about a second. An error
// of CUDA is a check that failed.
std::vector<DoctorCheck> prove_counters(CounterSession& counters, const Timer& timer,
                                        cudaStream_t stream);

}  // namespace rooflash
