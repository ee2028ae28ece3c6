#include "measure/counter_failure.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>
#include <vector>

namespace rooflash {
namespace {

constexpr const char* kAskAdministrator =
    "the driver keeps counters to administrators: run as root or with CAP_SYS_ADMIN (CAP_PERFMON "
    "from driver 565; in a container --cap-add=SYS_ADMIN), or put `options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d, rebuild the initramfs and reboot";
constexpr const char* kOtherHolder =
    "another process holds this GPU's counters: pause DCGM (dcgmi profile --pause, later "
    "--resume), "
    "or end the profiler";

void CUPTIAPI ignore_callback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

// The cause and the way out of each code that has one of its own.
CounterFailure explain(const CuptiApi& api, CUptiResult code) {
  switch (static_cast<int>(code)) {
    case 1:  // INVALID_PARAMETER
      if (api.version() < CUPTI_API_VERSION) {
        return {"unavailable",
                fmt::format("{} has API version {} and rooflash was built for {}: install the "
                            "CUPTI of the toolkit built with, or name it in ROOFLASH_CUPTI",
                            api.path(), api.version(), CUPTI_API_VERSION)};
      }
      break;
    case 15:  // NOT_INITIALIZED
      if (!api.has_perf_host()) {
        return {"unavailable", "libnvperf_host.so is not beside " + api.path() +
                                   ": install the toolkit's CUPTI whole, or add the folder of that "
                                   "library to LD_LIBRARY_PATH"};
      }
      return {"unavailable",
              fmt::format("the driver is too old for {} (API version {}): install a newer driver, "
                          "or name an older CUPTI in ROOFLASH_CUPTI",
                          api.path(), api.version())};
    case 26:  // HARDWARE_BUSY
      return {"busy", kOtherHolder};
    case 31:  // UM_PROFILING_NOT_SUPPORTED_WITH_MPS
      return {"unavailable", "counters do not work under MPS: end the MPS daemon"};
    case 33:  // VIRTUALIZED_DEVICE_NOT_SUPPORTED
      return {"unavailable", "this virtual GPU has no counters; no setting brings them"};
    case 35:  // INSUFFICIENT_PRIVILEGES
      return {"no_permission", kAskAdministrator};
    case 36:  // OLD_PROFILER_API_INITIALIZED
    case 38:  // LEGACY_PROFILER_NOT_SUPPORTED
      return {"other_tool", "another library of this process uses an older profiling interface"};
    case 39:  // MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED
      return {"other_tool", "a profiler is attached to this process: run without it to count"};
    case 40:  // VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES
      return {"no_permission", "profiling of this vGPU must be enabled on its host"};
    case 41:  // CONFIDENTIAL_COMPUTING_NOT_SUPPORTED
      return {"unavailable", "a GPU in confidential computing mode has no counters"};
    case 42:  // CMP_DEVICE_NOT_SUPPORTED
      return {"unavailable", "a mining card (CMP) has no counters"};
    case 43:  // MIG_DEVICE_NOT_SUPPORTED
      return {"unavailable", "this MIG slice has no counters: use the whole GPU"};
    case 44:  // SLI_DEVICE_NOT_SUPPORTED
      return {"unavailable", "a GPU in SLI has no counters: switch SLI off"};
    case 45:  // WSL_DEVICE_NOT_SUPPORTED
      return {"unavailable", "this WSL has no counters: it takes Windows 11 and driver 525"};
    case 46:  // INVALID_CHIP_NAME
      return {"unavailable", fmt::format("{} (API version {}) does not know this chip: install a "
                                         "newer CUPTI",
                                         api.path(), api.version())};
    case 999:  // UNKNOWN
      return {"unavailable", "CUPTI found no driver that it can work with (" + api.path() + ")"};
    default:
      break;
  }
  return {"unavailable", fmt::format("{}, API version {}", api.path(), api.version())};
}

}  // namespace

CounterFailure counter_failure(const CuptiApi& api, CUptiResult code, const char* call) {
  CounterFailure failure = explain(api, code);
  failure.reason = fmt::format("{}: {}; {}", call, api.text(code), failure.reason);
  return failure;
}

CounterFailure stand_down_for(const std::string& tool) {
  return {"other_tool", "running under " + tool + ", which owns the counters: run without it"};
}

std::string attached_client(const CuptiApi& api) {
  // Subscribed and given back at once.
  CUpti_SubscriberHandle subscriber{};
  const char* call = "cuptiSubscribe";
  CUptiResult code = CUPTI_SUCCESS;
  std::string name;
#ifdef CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN
  if (api.cuptiSubscribe_v2 != nullptr) {
    std::array<char, std::size_t{2} * CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN> other{};
    CUpti_SubscriberParams params{};
    params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
    params.subscriberName = "rooflash";
    params.oldSubscriberName = other.data();
    params.oldSubscriberSize = other.size() - 1;
    call = "cuptiSubscribe_v2";
    code = api.cuptiSubscribe_v2(&subscriber, ignore_callback, nullptr, &params);
    name = other.data();
  } else
#endif
  {
    code = api.cuptiSubscribe(&subscriber, ignore_callback, nullptr);
  }
  if (code == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED) {
    return name.empty() ? "another profiler" : name;
  }
  if (code == CUPTI_SUCCESS) {
    call = "cuptiUnsubscribe";
    code = api.cuptiUnsubscribe(subscriber);
  }
  if (code != CUPTI_SUCCESS) throw counter_failure(api, code, call);
  return {};
}

CounterFailure unsupported_device(const CUpti_Profiler_DeviceSupported_Params& support) {
  if (support.vGpu == CUPTI_PROFILER_CONFIGURATION_DISABLED) {
    return {"no_permission", "profiling of this vGPU must be enabled on its host"};
  }
  const std::pair<CUpti_Profiler_Support_Level, const char*> causes[] = {
      {support.architecture, "its architecture is older than Volta"},
      {support.sli, "SLI is on"},
      {support.vGpu, "this virtual GPU has no counters"},
      {support.confidentialCompute, "confidential computing is on"},
      {support.cmp, "it is a mining card (CMP)"},
      {support.wsl, "this WSL has no counters: it takes Windows 11 and driver 525"},
  };
  std::string why;
  for (const auto& [level, cause] : causes) {
    if (level == CUPTI_PROFILER_CONFIGURATION_SUPPORTED) continue;
    why += fmt::format("{}{}", why.empty() ? "" : "; ", cause);
  }
  return {"unavailable",
          "CUPTI cannot profile this device: " + (why.empty() ? "it does not say why" : why)};
}

}  // namespace rooflash
