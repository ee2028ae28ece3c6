// The NVML entry points used, found at run time, for one GPU. Private to gpu/nvml.cpp.
#pragma once

#include <string>

#include "gpu/library.hpp"

namespace rooflash {

// Own declarations: a toolkit may come without nvml.h.
using NvmlReturn = int;
using NvmlDevice = struct nvmlDevice_st*;

struct NvmlProcessInfo {  // nvmlProcessInfo_t of nvmlDeviceGetComputeRunningProcesses_v3
  unsigned pid;
  unsigned long long used_bytes;
  unsigned gpu_instance;
  unsigned compute_instance;
};

struct NvmlApi {
  // Opens the library that ROOFLASH_NVML names ("0" for none), else the driver's, and finds the
  // device at `pci_bus_id`, which must have the name that CUDA gives it.
  NvmlApi(const std::string& pci_bus_id, const std::string& cuda_name);
  // Of which nothing can be asked, for the reason given.
  explicit NvmlApi(std::string why) : unusable(std::move(why)) {}
  ~NvmlApi();
  NvmlApi(const NvmlApi&) = delete;
  NvmlApi& operator=(const NvmlApi&) = delete;

  // What NVML says of `code`, the cause and the way out.
  std::string explain(NvmlReturn code) const;

  // Why `function(device, args...)` gave no answer; "" where it did.
  template <class Function, class... Args>
  std::string ask(Function* function, Args... args) const {
    if (!unusable.empty()) return unusable;
    if (function == nullptr) return "this driver's NVML has no such query";
    const NvmlReturn code = function(device, args...);
    return code == 0 ? std::string() : explain(code);
  }

  std::string unusable;  // why nothing can be asked; "" when fine
  Library library;
  NvmlDevice device = nullptr;
  bool initialised = false;

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
  NvmlReturn (*power_limit_default)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*energy)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*temperature)(NvmlDevice, unsigned, unsigned*) = nullptr;
  NvmlReturn (*reasons)(NvmlDevice, unsigned long long*) = nullptr;
  NvmlReturn (*persistence)(NvmlDevice, unsigned*) = nullptr;
  NvmlReturn (*ecc)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*mig)(NvmlDevice, unsigned*, unsigned*) = nullptr;
  NvmlReturn (*processes)(NvmlDevice, unsigned*, NvmlProcessInfo*) = nullptr;

 private:
  void find_entry_points();
  void find_device(const std::string& pci_bus_id, const std::string& cuda_name);
};

}  // namespace rooflash
