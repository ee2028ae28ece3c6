// Asks one GPU what `rooflash doctor` wants to know; worker/doctor/ judges the answers.
#pragma once

#include <string>
#include <vector>

#include "measure/counters.hpp"
#include "measure/timer.hpp"
#include "worker/doctor/device_checks.hpp"

namespace rooflash {

// Versions of the driver, the toolkit and cuBLAS; the rest of the state is the caller's.
DeviceState software_state();

// Proves the counters with a copy and a matrix product of known size, in about a second. An error
// of CUDA is a check that failed.
std::vector<DoctorCheck> prove_counters(CounterSession& counters, const Timer& timer,
                                        cudaStream_t stream);

}  // namespace rooflash
