// NVTX ranges in the domain "rooflash", for Nsight Systems and Nsight Compute. Without a tool
// attached each costs a few nanoseconds.
#pragma once

#include <string>

namespace rooflash {

enum class NvtxPhase { setup, warmup, timed, counters, verify };

// A range of the calling thread, closed at the end of its scope. The phase names are registered
// strings, because tools trigger their capture on those only.
class NvtxRange {
 public:
  explicit NvtxRange(NvtxPhase phase);
  explicit NvtxRange(const std::string& label);
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace rooflash
