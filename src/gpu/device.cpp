#include "gpu/device.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/hash.hpp"
#include "gpu/check.hpp"
#include "gpu/nvml.hpp"

namespace rooflash {
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

[[noreturn]] void no_gpu(cudaError_t status) {
  (void)cudaGetLastError();
  int supported = 0;
  (void)cudaDriverGetVersion(&supported);
  const std::string driver = installed_driver();
  const std::string built = "built with CUDA " + toolkit_version();
  if (supported == 0 && driver.empty()) {
    throw Error(ExitCode::no_gpu, "no NVIDIA driver is installed (" + built + ")",
                "install the driver and see that nvidia-smi lists the GPU; in a container start it "
                "with --gpus all; without a GPU use --device sim:h200");
  }
  if (status == cudaErrorInsufficientDriver) {
    throw Error(
        ExitCode::no_gpu,
        fmt::format("the NVIDIA driver {} supports CUDA {} at most, and rooflash was {}",
                    driver.empty() ? "(version unknown)" : driver, version_text(supported), built),
        "install a newer driver, or build rooflash with a toolkit that old");
  }
  throw Error(
      ExitCode::no_gpu,
      fmt::format("no usable CUDA device: {}: {} (driver {}, {}, CUDA_VISIBLE_DEVICES '{}')",
                  cudaGetErrorName(status), cudaGetErrorString(status), driver, built,
                  visible_devices()),
      "see that nvidia-smi lists the GPU and that CUDA_VISIBLE_DEVICES names one");
}

cudaDeviceProp properties(int ordinal) {
  const int count = require_devices();
  if (ordinal < 0 || ordinal >= count) {
    throw UsageError(fmt::format("there is no device cuda:{}", ordinal),
                     fmt::format("{} visible: cuda:0 to cuda:{}", count, count - 1));
  }
  cudaDeviceProp prop{};
  ROOFLASH_CUDA(cudaGetDeviceProperties(&prop, ordinal));
  return prop;
}

}  // namespace

int require_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status != cudaSuccess) no_gpu(status);
  if (count == 0) no_gpu(cudaErrorNoDevice);
  return count;
}

std::string pci_bus_id(int ordinal) {
  char text[32] = {};
  ROOFLASH_CUDA(cudaDeviceGetPCIBusId(text, sizeof(text), ordinal));
  return text;
}

DeviceInfo describe_device(int ordinal) {
  const cudaDeviceProp prop = properties(ordinal);
  DeviceInfo info;
  info.device = fmt::format("cuda:{}", ordinal);
  info.name = prop.name;
  // Hashed: it tells two cards apart in a record without naming one.
  info.uuid_hash = hash_hex(std::string_view(prop.uuid.bytes, sizeof(prop.uuid.bytes)));
  info.sm_count = prop.multiProcessorCount;
  info.compute_capability = prop.major * 10 + prop.minor;
  info.memory_bytes = static_cast<std::int64_t>(prop.totalGlobalMem);
  info.l2_bytes = prop.l2CacheSize;
  const NvmlFacts facts = Nvml(pci_bus_id(ordinal), info.name).facts();
  info.sm_clock_max_mhz = facts.sm_clock_max_mhz;
  info.memory_clock_max_mhz = facts.memory_clock_max_mhz;
  info.power_limit_w = facts.power_limit_w;
  info.ecc = facts.ecc;
  info.mig = facts.mig;
  info.other_processes = facts.compute_processes;
  return info;
}

DeviceLimits device_limits(int ordinal) {
  const cudaDeviceProp prop = properties(ordinal);
  DeviceLimits limits;
  limits.sm = prop.major * 10 + prop.minor;
  limits.sm_count = prop.multiProcessorCount;
  limits.smem_per_block_bytes = static_cast<std::int64_t>(prop.sharedMemPerBlockOptin);
  return limits;
}

std::string toolkit_version() {
  return version_text(CUDART_VERSION);
}

std::string visible_devices() {
  const char* value = std::getenv("CUDA_VISIBLE_DEVICES");
  std::string text = value != nullptr ? value : "";
  for (const std::string_view prefix : {"GPU-", "MIG-"}) {
    std::size_t at = 0;
    while ((at = text.find(prefix, at)) != std::string::npos) {
      at += prefix.size();
      const std::size_t length = std::min(text.find(',', at), text.size()) - at;
      const std::string hash = hash_hex(std::string_view(text).substr(at, length));
      text.replace(at, length, hash);
      at += hash.size();
    }
  }
  return text;
}

}  // namespace rooflash
