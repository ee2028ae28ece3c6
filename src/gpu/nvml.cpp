#include "gpu/nvml.hpp"

#include <array>
#include <fstream>

#include "gpu/library.hpp"

namespace rooflash {
namespace {

// Own declarations of the few entry points used: a toolkit may come without nvml.h.
using NvmlReturn = int;
using NvmlDevice = struct nvmlDevice_st*;
constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;
constexpr NvmlReturn kInsufficientSize = 7;

struct ProcessInfo {  // nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

// Reasons other than "idle" and "clocks set by the user", which hold nothing down.
constexpr std::array<std::pair<unsigned long long, const char*>, 6> kReasons{{
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal"},
    {0x40, "hw_thermal"},
    {0x80, "hw_power_brake"},
}};

std::string driver_from_proc() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ..."
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    const bool version = word.find('.') != std::string::npos &&
                         word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
  }
  return {};
}

}  // namespace

struct Nvml::Api {
  Library library{"libnvidia-ml.so.1"};
  NvmlDevice device = nullptr;
  bool initialised = false;
  std::string unusable;  // why nothing can be asked; "" when fine

  NvmlReturn (*init)() = nullptr;
  NvmlReturn (*shutdown)() = nullptr;
  const char* (*error_string)(NvmlReturn) = nullptr;
  NvmlReturn (*driver_version)(char*, unsigned) = nullptr;
  NvmlReturn (*handle_by_bus_id)(const char*, NvmlDevice*) = nullptr;
  NvmlReturn (*name)(NvmlDevice, char*, unsigned) = nullptr;
  NvmlReturn (*clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*max_clock)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*power)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*power_limit)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*ecc)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*mig)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*processes)(NvmlDevice, unsigned*, ProcessInfo*) = nullptr;

  Api();
  ~Api() {
    if (initialised && shutdown != nullptr) (void)shutdown();
  }
  std::string text(NvmlReturn code) const {
    return error_string != nullptr ? error_string(code) : "NVML error " + std::to_string(code);
  }

  // Why `function(device, args...)` gave no answer; "" where it did.
  template <class Function, class... Args>
  std::string ask(Function* function, Args... args) const {
    if (!unusable.empty()) return unusable;
    if (function == nullptr) return "this driver's NVML has no such query";
    const NvmlReturn code = function(device, args...);
    return code == 0 ? std::string() : "NVML: " + text(code);
  }
};

Nvml::Api::Api() {
  if (!library) {
    unusable = "NVML is not available: " + library.error();
    return;
  }
  library.find(error_string, "nvmlErrorString");
  library.find(shutdown, "nvmlShutdown");
  library.find(driver_version, "nvmlSystemGetDriverVersion");
  library.find(handle_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  library.find(name, "nvmlDeviceGetName");
  library.find(clock, "nvmlDeviceGetClockInfo");
  library.find(max_clock, "nvmlDeviceGetMaxClockInfo");
  library.find(power, "nvmlDeviceGetPowerUsage");
  library.find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  library.find(temperature, "nvmlDeviceGetTemperature");
  if (!library.find(reasons, "nvmlDeviceGetCurrentClocksEventReasons")) {
    library.find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  library.find(ecc, "nvmlDeviceGetEccMode");
  library.find(mig, "nvmlDeviceGetMigMode");
  library.find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
  if (!library.find(init, "nvmlInit_v2")) {
    unusable = "NVML has no nvmlInit_v2";
    return;
  }
  const NvmlReturn code = init();
  initialised = code == 0;
  if (!initialised) unusable = "NVML could not start: " + text(code);
}

Nvml::Nvml(const std::string& pci_bus_id, const std::string& name) : api_(new Api) {
  if (!api_->unusable.empty()) return;
  if (api_->handle_by_bus_id == nullptr || api_->name == nullptr) {
    api_->unusable = "this driver's NVML finds no device by PCI bus id";
    return;
  }
  NvmlReturn code = api_->handle_by_bus_id(pci_bus_id.c_str(), &api_->device);
  char found[96] = {};
  if (code == 0) code = api_->name(api_->device, found, sizeof(found));
  if (code != 0) {
    api_->unusable = "NVML has no device " + pci_bus_id + ": " + api_->text(code);
  } else if (name != found) {
    api_->unusable = "NVML calls device " + pci_bus_id + " '" + found + "', CUDA '" + name + "'";
  }
}

Nvml::~Nvml() = default;

NvmlSnapshot Nvml::snapshot() const {
  NvmlSnapshot result;
  // One query, its value scaled into `target`, or the reason noted under `field`.
  const auto read = [&](const char* field, std::optional<double>& target, double scale,
                        auto* function, auto... args) {
    unsigned value = 0;
    const std::string error = api_->ask(function, args..., &value);
    if (error.empty()) {
      target = value * scale;
    } else {
      result.missing[field] = error;
    }
  };
  read("sm_clock_mhz", result.sm_clock_mhz, 1, api_->clock, kClockSm);
  read("memory_clock_mhz", result.memory_clock_mhz, 1, api_->clock, kClockMemory);
  read("power_w", result.power_w, 1e-3, api_->power);
  read("temperature_c", result.temperature_c, 1, api_->temperature, kTemperatureGpu);
  unsigned long long bits = 0;
  const std::string error = api_->ask(api_->reasons, &bits);
  if (error.empty()) {
    result.throttle.emplace();
    for (const auto& [bit, reason] : kReasons) {
      if ((bits & bit) != 0) result.throttle->emplace_back(reason);
    }
  } else {
    result.missing["throttle"] = error;
  }
  return result;
}

NvmlFacts Nvml::facts() const {
  NvmlFacts result;
  const auto note = [&](const char* field, const std::string& error) {
    if (!error.empty()) result.missing[field] = error;
    return error.empty();
  };
  unsigned value = 0;
  unsigned pending = 0;
  if (note("sm_clock_max_mhz", api_->ask(api_->max_clock, kClockSm, &value))) {
    result.sm_clock_max_mhz = value;
  }
  if (note("memory_clock_max_mhz", api_->ask(api_->max_clock, kClockMemory, &value))) {
    result.memory_clock_max_mhz = value;
  }
  if (note("power_limit_w", api_->ask(api_->power_limit, &value))) {
    result.power_limit_w = value * 1e-3;
  }
  if (note("ecc", api_->ask(api_->ecc, &value, &pending))) result.ecc = value != 0;
  if (note("mig", api_->ask(api_->mig, &value, &pending))) result.mig = value != 0;
  if (api_->unusable.empty() && api_->processes != nullptr) {
    unsigned count = 0;  // asked with no room, NVML answers with the number of processes
    const NvmlReturn code =
        api_->processes(api_->device, &count, static_cast<ProcessInfo*>(nullptr));
    if (code == 0 || code == kInsufficientSize) {
      result.compute_processes = count;
    } else {
      result.missing["other_processes"] = "NVML: " + api_->text(code);
    }
  } else {
    result.missing["other_processes"] = api_->ask(api_->processes, &value, nullptr);
  }
  return result;
}

std::string Nvml::driver_version() const {
  char text[96] = {};
  if (api_->initialised && api_->driver_version != nullptr &&
      api_->driver_version(text, sizeof(text)) == 0) {
    return text;
  }
  return driver_from_proc();
}

std::string installed_driver() {
  return driver_from_proc();
}

}  // namespace rooflash
