// The CUPTI entry points used, found at run time.
#pragma once

#include <cupti_callbacks.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include <string>

#include "gpu/library.hpp"

namespace rooflash {

// clang-format off
#define ROOFLASH_CUPTI_FUNCTIONS(X)              \
  X(cuptiGetVersion)                             \
  X(cuptiGetResultString)                        \
  X(cuptiSubscribe)                              \
  X(cuptiUnsubscribe)                            \
  X(cuptiDeviceGetChipName)                      \
  X(cuptiProfilerInitialize)                     \
  X(cuptiProfilerDeInitialize)                   \
  X(cuptiProfilerDeviceSupported)                \
  X(cuptiProfilerGetCounterAvailability)         \
  X(cuptiProfilerHostInitialize)                 \
  X(cuptiProfilerHostDeinitialize)               \
  X(cuptiProfilerHostConfigAddMetrics)           \
  X(cuptiProfilerHostGetConfigImageSize)         \
  X(cuptiProfilerHostGetConfigImage)             \
  X(cuptiProfilerHostGetNumOfPasses)             \
  X(cuptiProfilerHostEvaluateToGpuValues)        \
  X(cuptiRangeProfilerEnable)                    \
  X(cuptiRangeProfilerDisable)                   \
  X(cuptiRangeProfilerGetCounterDataSize)        \
  X(cuptiRangeProfilerCounterDataImageInitialize)\
  X(cuptiRangeProfilerSetConfig)                 \
  X(cuptiRangeProfilerStart)                     \
  X(cuptiRangeProfilerPushRange)                 \
  X(cuptiRangeProfilerPopRange)                  \
  X(cuptiRangeProfilerStop)                      \
  X(cuptiRangeProfilerDecodeData)                \
  X(cuptiRangeProfilerGetCounterDataInfo)
// clang-format on

// Looked for in this order: the file in ROOFLASH_CUPTI ("0" switches counters off), a copy already
// loaded, the soname of the toolkit built with, CUDA_HOME and CUDA_PATH, /usr/local/cuda. Private
// copies that profilers ship are never taken.
class CuptiApi {
 public:
  CuptiApi();
  // Why it cannot be used; "" when fine.
  const std::string& error() const { return error_; }
  const std::string& path() const { return path_; }
  std::string text(CUptiResult code) const;  // "CUPTI_ERROR_...", with the code

#define ROOFLASH_CUPTI_MEMBER(name) decltype(&::name) name = nullptr;
  ROOFLASH_CUPTI_FUNCTIONS(ROOFLASH_CUPTI_MEMBER)
#undef ROOFLASH_CUPTI_MEMBER

 private:
  bool open(const std::string& name, bool only_if_loaded = false);

  Library perf_host_;  // libnvperf_host.so, which CUPTI asks for by bare name
  Library library_;
  std::string path_;
  std::string error_;
};

}  // namespace rooflash
