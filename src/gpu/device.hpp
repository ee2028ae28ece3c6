// CUDA devices: what they are, and plain words where there are none.
#pragma once

#include <cstdint>
#include <string>

#include "core/record.hpp"
#include "kernel.hpp"

namespace rooflash {

// Number of visible devices, at least 1. Throws Error(no_gpu) where there is no driver, one too old
// for the toolkit this was built with, or no device, and says what to do about it.
int require_devices();

// Facts of device `ordinal`, from the CUDA runtime and NVML. Creates no context, so that
// `other_processes` counts none of our own. Throws as require_devices, and UsageError for an
// ordinal that does not exist.
DeviceInfo describe_device(int ordinal);

// "0000:1a:00.0", as NVML spells it too.
std::string pci_bus_id(int ordinal);

DeviceLimits device_limits(int ordinal);

std::string toolkit_version();  // of the build: "13.0"
std::string visible_devices();  // CUDA_VISIBLE_DEVICES with UUIDs hashed, "" where not set

}  // namespace rooflash
