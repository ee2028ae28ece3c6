// A CUPTI that does what FAKE_CUPTI says (script.hpp), on a machine with no GPU. With an empty
// script everything succeeds on a chip "GH100", in one pass, and every metric is 1e6.
//
//   chip=GA100           the chip's name        metric:NAME=VALUE   a metric's value ("nan", "-1")
//   passes=2             needed and announced   announced=1         announced, where it differs
//   reject=NAME          an unknown metric      ranges=0 dropped=1  what decoding finds
//   client=NAME          who is subscribed      version=120800      the library's API version
//   known_size=40        the largest block of parameters that is not refused
//   vgpu=2 sli=1 ...     members of DeviceSupported, 3 for supported; supported=1
//
// FAKE_CUPTI_OLD leaves out a function, as a library older than the toolkit does. What the real
// library leaves undefined is refused here: calls out of order, images that are moved, unaligned or
// too small. Metrics reach the values through the images, as in the real one, so that a config
// image freed early is seen by AddressSanitizer.
#include <cupti_callbacks.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>
#include <cupti_version.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>

#include "fakes/script.hpp"

namespace {

fake::Script script("FAKE_CUPTI");

constexpr std::uint64_t kConfigMagic = 0x636f6e666967;
constexpr std::uint64_t kDataMagic = 0x64617461;
constexpr std::size_t kImageBytes = 44;  // no multiple of 8: the caller must round up

// The objects that are alive, and where the one session stands.
std::set<void*> hosts;
bool initialised = false;
bool enabled = false;
bool started = false;
std::set<std::string> sized_for;
bool in_range = false;
bool decoded = false;
std::size_t passes_done = 0;
const std::uint8_t* config_image = nullptr;
std::uint8_t* data_image = nullptr;
CUpti_RangeProfiler_Object* const kProfiler =
    reinterpret_cast<CUpti_RangeProfiler_Object*>(std::uintptr_t{0x100});

std::uint64_t magic_of(const std::uint8_t* image) {
  std::uint64_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  return magic;
}

CUptiResult refuse_unless(bool fine) {
  return fine ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_OPERATION;
}

// What the script returns from `function`, or the refusal of a block larger than is known.
template <class Params>
CUptiResult begin(const char* function, const Params* params) {
  const int code = script.call(function);
  if (code != 0) return static_cast<CUptiResult>(code);
  const bool known = params->structSize <= script.count("known_size", sizeof(Params));
  return known ? CUPTI_SUCCESS : CUPTI_ERROR_INVALID_PARAMETER;
}
#define FAKE_BEGIN(params)                              \
  const CUptiResult scripted = begin(__func__, params); \
  if (scripted != CUPTI_SUCCESS) return scripted

CUpti_Profiler_Support_Level level(const char* key) {
  return static_cast<CUpti_Profiler_Support_Level>(script.count(key, 3));
}

}  // namespace

extern "C" {

// For the tests: forgets what was called; how often `function` was; whether all was given back.
__attribute__((visibility("default"))) void fake_reset() {
  script.reset();
  initialised = enabled = started = in_range = decoded = false;
  sized_for.clear();
  hosts.clear();
}
__attribute__((visibility("default"))) int fake_calls(const char* function) {
  return script.calls(function);
}
__attribute__((visibility("default"))) bool fake_is_clean() {
  return !initialised && !enabled && hosts.empty() &&
         script.calls("cuptiUnsubscribe") <= script.calls("cuptiSubscribe_v2");
}

CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  *version = static_cast<std::uint32_t>(script.count("version", CUPTI_API_VERSION));
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult code, const char** text) {
  static thread_local std::string name;
  name = "FAKE_ERROR_" + std::to_string(static_cast<int>(code));
  *text = name.c_str();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*) {
  return static_cast<CUptiResult>(script.call(__func__));
}

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle*, CUpti_CallbackFunc, void*,
                                       CUpti_SubscriberParams* params) {
  FAKE_BEGIN(params);
  const auto client = script.value("client");
  if (!client) return CUPTI_SUCCESS;
  std::snprintf(params->oldSubscriberName, params->oldSubscriberSize, "%s", client->c_str());
  return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle) {
  return static_cast<CUptiResult>(script.call(__func__));
}

CUptiResult CUPTIAPI cuptiProfilerInitialize(CUpti_Profiler_Initialize_Params* params) {
  FAKE_BEGIN(params);
  initialised = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerDeInitialize(CUpti_Profiler_DeInitialize_Params* params) {
  FAKE_BEGIN(params);
  initialised = false;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiProfilerDeviceSupported(CUpti_Profiler_DeviceSupported_Params* params) {
  FAKE_BEGIN(params);
  params->architecture = level("architecture");
  params->sli = level("sli");
  params->vGpu = level("vgpu");
  params->confidentialCompute = level("confidential");
  params->cmp = level("cmp");
  params->wsl = level("wsl");
  params->isSupported = level("supported");
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiDeviceGetChipName(CUpti_Device_GetChipName_Params* params) {
  FAKE_BEGIN(params);
  static std::string name;
  name = script.value("chip").value_or("GH100");
  params->pChipName = name.c_str();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerGetCounterAvailability(CUpti_Profiler_GetCounterAvailability_Params* params) {
  FAKE_BEGIN(params);
  if (params->pCounterAvailabilityImage != nullptr) {
    std::memset(params->pCounterAvailabilityImage, 1, params->counterAvailabilityImageSize);
  }
  params->counterAvailabilityImageSize = kImageBytes;
  return refuse_unless(initialised);
}

CUptiResult CUPTIAPI cuptiProfilerHostInitialize(CUpti_Profiler_Host_Initialize_Params* params) {
  FAKE_BEGIN(params);
  auto* const host = new char;
  hosts.insert(host);
  params->pHostObject = reinterpret_cast<CUpti_Profiler_Host_Object*>(host);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostDeinitialize(CUpti_Profiler_Host_Deinitialize_Params* params) {
  FAKE_BEGIN(params);
  if (hosts.erase(params->pHostObject) != 1) return CUPTI_ERROR_INVALID_PARAMETER;
  delete reinterpret_cast<char*>(params->pHostObject);
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetBaseMetrics(CUpti_Profiler_Host_GetBaseMetrics_Params* params) {
  FAKE_BEGIN(params);
  static const char* counters[] = {"dram__bytes_read", "sm__cycles_elapsed"};
  static const char* ratios[] = {"lts__t_sector_hit_rate"};
  static const char* throughputs[] = {"dram__throughput"};
  const bool counter = params->metricType == CUPTI_METRIC_TYPE_COUNTER;
  params->ppMetricNames = counter                                         ? counters
                          : params->metricType == CUPTI_METRIC_TYPE_RATIO ? ratios
                                                                          : throughputs;
  params->numMetrics = counter ? 2 : 1;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostConfigAddMetrics(CUpti_Profiler_Host_ConfigAddMetrics_Params* params) {
  FAKE_BEGIN(params);
  const auto rejected = script.value("reject");
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    if (rejected && *rejected == params->ppMetricNames[i]) return CUPTI_ERROR_INVALID_PARAMETER;
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImageSize(CUpti_Profiler_Host_GetConfigImageSize_Params* params) {
  FAKE_BEGIN(params);
  params->configImageSize = kImageBytes;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetConfigImage(CUpti_Profiler_Host_GetConfigImage_Params* params) {
  FAKE_BEGIN(params);
  if (params->configImageSize < kImageBytes ||
      reinterpret_cast<std::uintptr_t>(params->pConfigImage) % 8 != 0) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  std::memset(params->pConfigImage, 0, kImageBytes);
  std::memcpy(params->pConfigImage, &kConfigMagic, sizeof(kConfigMagic));
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostGetNumOfPasses(CUpti_Profiler_Host_GetNumOfPasses_Params* params) {
  FAKE_BEGIN(params);
  params->numOfPasses = script.count("announced", script.count("passes", 1));
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiProfilerHostEvaluateToGpuValues(CUpti_Profiler_Host_EvaluateToGpuValues_Params* params) {
  FAKE_BEGIN(params);
  if (hosts.count(params->pHostObject) != 1 || magic_of(params->pCounterDataImage) != kDataMagic) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  for (std::size_t i = 0; i < params->numMetrics; ++i) {
    const std::string name = params->ppMetricNames[i];
    params->pMetricValues[i] =
        sized_for.contains(name) ? script.number("metric:" + name, 1e6) : std::nan("");
  }
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerEnable(CUpti_RangeProfiler_Enable_Params* params) {
  FAKE_BEGIN(params);
  if (enabled || params->ctx == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
  enabled = true;
  started = in_range = decoded = false;
  passes_done = 0;
  config_image = nullptr;
  data_image = nullptr;
  sized_for.clear();
  params->pRangeProfilerObject = kProfiler;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerDisable(CUpti_RangeProfiler_Disable_Params* params) {
  FAKE_BEGIN(params);
  if (!enabled || params->pRangeProfilerObject != kProfiler) return CUPTI_ERROR_INVALID_OPERATION;
  enabled = false;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI
cuptiRangeProfilerGetCounterDataSize(CUpti_RangeProfiler_GetCounterDataSize_Params* params) {
  FAKE_BEGIN(params);
  params->counterDataSize = kImageBytes;
  // The real one keeps to the first list it is asked about after Enable.
  if (sized_for.empty()) {
    sized_for.insert(params->pMetricNames, params->pMetricNames + params->numMetrics);
  }
  return refuse_unless(params->maxNumRangeTreeNodes >= params->maxNumOfRanges);
}

CUptiResult CUPTIAPI cuptiRangeProfilerCounterDataImageInitialize(
    CUpti_RangeProfiler_CounterDataImage_Initialize_Params* params) {
  FAKE_BEGIN(params);
  if (params->counterDataSize < kImageBytes) return CUPTI_ERROR_INVALID_PARAMETER;
  std::memset(params->pCounterData, 0, params->counterDataSize);
  data_image = params->pCounterData;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerSetConfig(CUpti_RangeProfiler_SetConfig_Params* params) {
  FAKE_BEGIN(params);
  const bool ready = enabled && !started && data_image == params->pCounterDataImage &&
                     magic_of(params->pConfig) == kConfigMagic;
  if (!ready) return CUPTI_ERROR_INVALID_OPERATION;
  config_image = params->pConfig;  // kept, as the real one does
  passes_done = 0;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerStart(CUpti_RangeProfiler_Start_Params* params) {
  FAKE_BEGIN(params);
  if (started || config_image == nullptr || magic_of(config_image) != kConfigMagic) {
    return CUPTI_ERROR_INVALID_OPERATION;
  }
  started = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerPushRange(CUpti_RangeProfiler_PushRange_Params* params) {
  FAKE_BEGIN(params);
  if (!started || in_range) return CUPTI_ERROR_INVALID_OPERATION;
  in_range = true;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerPopRange(CUpti_RangeProfiler_PopRange_Params* params) {
  FAKE_BEGIN(params);
  if (!in_range) return CUPTI_ERROR_INVALID_OPERATION;
  in_range = false;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiRangeProfilerStop(CUpti_RangeProfiler_Stop_Params* params) {
  FAKE_BEGIN(params);
  if (!started || in_range) return CUPTI_ERROR_INVALID_OPERATION;
  started = false;
  ++passes_done;
  params->isAllPassSubmitted = passes_done >= script.count("passes", 1);
  return CUPTI_SUCCESS;
}

#ifndef FAKE_CUPTI_OLD
CUptiResult CUPTIAPI cuptiRangeProfilerDecodeData(CUpti_RangeProfiler_DecodeData_Params* params) {
  FAKE_BEGIN(params);
  if (data_image == nullptr || passes_done == 0) return CUPTI_ERROR_INVALID_OPERATION;
  std::memcpy(data_image, &kDataMagic, sizeof(kDataMagic));
  decoded = true;
  params->numOfRangeDropped = script.count("dropped", 0);
  return CUPTI_SUCCESS;
}
#endif

CUptiResult CUPTIAPI
cuptiRangeProfilerGetCounterDataInfo(CUpti_RangeProfiler_GetCounterDataInfo_Params* params) {
  FAKE_BEGIN(params);
  params->numTotalRanges = script.count("ranges", 1);
  return refuse_unless(decoded);
}

}  // extern "C"
