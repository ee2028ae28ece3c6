// Whether one GPU is fit to be measured on: judges facts, asks nothing and needs no GPU.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"
#include "gpu/nvml.hpp"
#include "kernel.hpp"
#include "worker/doctor/check.hpp"

namespace rooflash {

// What is known of a device before anything is run on it.
struct DeviceState {
  DeviceInfo device;
  NvmlFacts facts;
  NvmlSnapshot now;
  std::string driver;    // "580.95.05"; "" where unknown
  int driver_cuda = 0;   // newest CUDA that the driver serves, 13000 for 13.0; 0 where unknown
  int toolkit_cuda = 0;  // built with
  std::string cublas;    // version; "" where it gives none
  VendorLibrary cudnn;
};

// driver, cublas, cudnn, gpu, nvml, clocks, clocks_set, throttle, other_processes, power_limit,
// persistence, ecc, mig; in this order, each once. nvml is there only where NVML tells nothing, and
// then takes the place of all that it would have told.
std::vector<DoctorCheck> device_checks(const DeviceState& state);

// The library that reads counters, as CounterSession names it, and whether it is the one built for.
struct CounterLibrary {
  std::string path;
  unsigned version = 0;  // CUPTI_API_VERSION of the library; 0 unknown
  unsigned headers = 0;  // of the headers built with
};

inline constexpr double kProofCopyBytes = 2147483648.0;  // 2 GiB

// `cupti` and `counters` for a copy of kProofCopyBytes that was counted, and `counters.copy` where
// it could be.
std::vector<DoctorCheck> copy_checks(const CounterLibrary& library, const Counters& counted);
// `counters.gemm`: a matrix product of `flops` operations by the formula, named `what`.
DoctorCheck gemm_check(const Counters& counted, double flops, const std::string& what);

}  // namespace rooflash
