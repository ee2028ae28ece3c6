// The CUPTI entry points used, found at run time.
#pragma once

#include <cupti_callbacks.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
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
  X(cuptiProfilerHostGetBaseMetrics)             \
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
  std::uint32_t version() const { return version_; }  // CUPTI_API_VERSION of the library; 0 unknown
  bool has_perf_host() const { return static_cast<bool>(perf_host_); }
  std::string text(CUptiResult code) const;  // "CUPTI_ERROR_...", with the code

// A name that is declared cannot stand in parentheses.
#define ROOFLASH_CUPTI_MEMBER(name) \
  decltype(&::name) name = nullptr;  // NOLINT(bugprone-macro-parentheses)
  ROOFLASH_CUPTI_FUNCTIONS(ROOFLASH_CUPTI_MEMBER)
#undef ROOFLASH_CUPTI_MEMBER
#ifdef CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN
  decltype(&::cuptiSubscribe_v2) cuptiSubscribe_v2 = nullptr;  // optional: it names who is attached
#endif

 private:
  bool open(const std::string& name, bool only_if_loaded = false);

  Library perf_host_;  // libnvperf_host.so, which CUPTI asks for by bare name
  Library library_;
  std::string path_;
  std::uint32_t version_ = 0;
  std::string error_;
};

// How much of a parameter block a library must know: CUDA 13.0's fields, where later toolkits added
// some. They are not used, and a library refuses a block that is larger than its own.
template <class Params>
inline constexpr std::size_t kCuptiSizeLimit = SIZE_MAX;
template <>
inline constexpr std::size_t kCuptiSizeLimit<CUpti_Profiler_GetCounterAvailability_Params> =
    CUPTI_PROFILER_STRUCT_SIZE(CUpti_Profiler_GetCounterAvailability_Params,
                               pCounterAvailabilityImage);
template <>
inline constexpr std::size_t kCuptiSizeLimit<CUpti_Profiler_Host_Initialize_Params> =
    CUPTI_PROFILER_STRUCT_SIZE(CUpti_Profiler_Host_Initialize_Params, pHostObject);
template <>
inline constexpr std::size_t kCuptiSizeLimit<CUpti_RangeProfiler_Enable_Params> =
    CUPTI_PROFILER_STRUCT_SIZE(CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);

// A zeroed parameter block with its size set: to the end of the last field, not sizeof.
template <class Params>
Params cupti_params(std::size_t size) {
  Params params{};
  params.structSize = std::min(size, kCuptiSizeLimit<Params>);
  return params;
}
#define ROOFLASH_CUPTI_PARAMS(type) (cupti_params<type##_Params>(type##_Params_STRUCT_SIZE))

}  // namespace rooflash
