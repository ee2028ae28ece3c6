#include "gpu/nvml_api.hpp"

#include <cstdlib>
#include <string_view>

namespace rooflash {
namespace {

Library open_library(std::string& unusable) {
  const char* chosen = std::getenv("ROOFLASH_NVML");
  if (chosen != nullptr && std::string_view(chosen) == "0") {
    unusable = "switched off by ROOFLASH_NVML=0";
    return {};
  }
  Library library(chosen != nullptr && *chosen != '\0' ? chosen : "libnvidia-ml.so.1");
  if (!library) {
    unusable = "no NVML library: " + library.error() +
               "; it comes with the driver (in a container start it with the utility capability, "
               "NVIDIA_DRIVER_CAPABILITIES=compute,utility)";
  }
  return library;
}

}  // namespace

NvmlApi::NvmlApi(const std::string& pci_bus_id, const std::string& cuda_name)
    : library(open_library(unusable)) {
  if (!unusable.empty()) return;
  find_entry_points();
  if (init == nullptr || handle_by_bus_id == nullptr || name == nullptr) {
    unusable = library.path_of("nvmlShutdown") + " lacks a function that NVML has had since 2013";
    return;
  }
  const NvmlReturn code = init();
  initialised = code == 0;
  if (!initialised) {
    unusable = "NVML could not start: " + explain(code);
    return;
  }
  find_device(pci_bus_id, cuda_name);
}

NvmlApi::~NvmlApi() {
  if (initialised && shutdown != nullptr) (void)shutdown();
}

void NvmlApi::find_entry_points() {
  library.find(init, "nvmlInit_v2");
  library.find(shutdown, "nvmlShutdown");
  library.find(error_string, "nvmlErrorString");
  library.find(driver_version, "nvmlSystemGetDriverVersion");
  library.find(handle_by_bus_id, "nvmlDeviceGetHandleByPciBusId_v2");
  library.find(name, "nvmlDeviceGetName");
  library.find(clock, "nvmlDeviceGetClockInfo");
  library.find(max_clock, "nvmlDeviceGetMaxClockInfo");
  library.find(power, "nvmlDeviceGetPowerUsage");
  library.find(power_limit, "nvmlDeviceGetEnforcedPowerLimit");
  library.find(power_limit_default, "nvmlDeviceGetPowerManagementDefaultLimit");
  library.find(energy, "nvmlDeviceGetTotalEnergyConsumption");
  library.find(temperature, "nvmlDeviceGetTemperature");
  if (!library.find(reasons, "nvmlDeviceGetCurrentClocksEventReasons")) {  // before driver 535
    library.find(reasons, "nvmlDeviceGetCurrentClocksThrottleReasons");
  }
  library.find(persistence, "nvmlDeviceGetPersistenceMode");
  library.find(ecc, "nvmlDeviceGetEccMode");
  library.find(mig, "nvmlDeviceGetMigMode");
  library.find(processes, "nvmlDeviceGetComputeRunningProcesses_v3");
}

// By PCI bus id, never by index: CUDA_VISIBLE_DEVICES and CUDA_DEVICE_ORDER change CUDA's.
void NvmlApi::find_device(const std::string& pci_bus_id, const std::string& cuda_name) {
  const NvmlReturn code = handle_by_bus_id(pci_bus_id.c_str(), &device);
  if (code != 0) {
    unusable = "NVML finds no device at " + pci_bus_id + ": " + explain(code);
    return;
  }
  char found[96] = {};
  const std::string error = ask(name, found, static_cast<unsigned>(sizeof(found)));
  if (!error.empty()) {
    unusable = "NVML does not name the device at " + pci_bus_id + ": " + error;
    return;
  }
  // CUDA calls a slice "NVIDIA H200 MIG 1g.18gb"; NVML finds the card that it is of.
  if (cuda_name == found || cuda_name.starts_with(std::string(found) + " MIG")) return;
  unusable = "NVML calls the device at " + pci_bus_id + " '" + found + "' and CUDA calls it '" +
             cuda_name +
             "': the two see different machines, and its figures would be another "
             "card's";
}

std::string NvmlApi::explain(NvmlReturn code) const {
  std::string text = "NVML error " + std::to_string(code);
  if (error_string != nullptr) text += std::string(" (") + error_string(code) + ")";
  switch (code) {
    case 3:  // NOT_SUPPORTED
      return text + ": this GPU, or a MIG slice of it, has no such figure";
    case 4:  // NO_PERMISSION
      return text + ": only an administrator may ask for it here";
    case 9:  // DRIVER_NOT_LOADED
      return text + ": load the driver's kernel module (nvidia-smi does it, run as root)";
    case 15:  // GPU_IS_LOST
      return text + ": the GPU fell off the bus; look for Xid in dmesg, and reboot";
    case 18:  // LIB_RM_VERSION_MISMATCH
      return text + ": the driver was updated and its kernel module was not; reboot";
    default:
      return text;
  }
}

}  // namespace rooflash
