// Why counters could not be read, in words: what CUPTI said, the cause, and the way out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/cupti_api.hpp"

namespace rooflash {

struct CounterFailure {
  std::string status;  // of docs/formats.md, "counters.status"
  std::string reason;
};

// For a `call` of CUPTI that returned `code`.
CounterFailure counter_failure(const CuptiApi& api, CUptiResult code, const char* call);

// Under a `tool` ("Nsight Compute"), which has the counters to itself.
CounterFailure stand_down_for(const std::string& tool);

// For a question before the first range: is another CUPTI client attached to this process? "" where
// none is, else its name or a description. Throws CounterFailure where CUPTI cannot say.
std::string attached_client(const CuptiApi& api);

// What cuptiProfilerDeviceSupported said, where it was not "supported".
CounterFailure unsupported_device(const CUpti_Profiler_DeviceSupported_Params& support);

}  // namespace rooflash
