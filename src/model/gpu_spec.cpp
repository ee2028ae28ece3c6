#include "model/gpu_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/embedded.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

std::vector<GpuSpec>& table() {
  constexpr std::string_view kFile = "suites/gpus.json";
  static std::vector<GpuSpec> specs = parse_gpu_specs(embedded(kFile).value(), kFile);
  return specs;
}

}  // namespace

void add_gpu_specs(std::string_view text, const std::string& path) {
  const std::string name = std::filesystem::path(path).filename().string();
  for (GpuSpec& spec : parse_gpu_specs(text, path, table())) {
    spec.source = fmt::format("{}: {}", printable(name), spec.source);
    const auto same = std::find_if(table().begin(), table().end(),
                                   [&](const GpuSpec& other) { return other.key == spec.key; });
    if (same != table().end()) {
      *same = std::move(spec);
    } else {
      table().push_back(std::move(spec));
    }
  }
}

std::span<const GpuSpec> gpu_specs() {
  return table();
}

const GpuSpec* find_gpu(std::string_view key) {
  for (const GpuSpec& spec : gpu_specs()) {
    if (spec.key == key) return &spec;
  }
  return nullptr;
}

const GpuSpec* find_gpu_by_name(std::string_view name) {
  for (const GpuSpec& spec : gpu_specs()) {
    if (std::find(spec.names.begin(), spec.names.end(), name) != spec.names.end()) return &spec;
  }
  return nullptr;
}

const GpuSpec& require_gpu(std::string_view key) {
  if (const GpuSpec* const spec = find_gpu(key)) return *spec;
  std::vector<std::string> keys;
  for (const GpuSpec& spec : gpu_specs()) keys.push_back(spec.key);
  throw UsageError(fmt::format("no GPU '{}' in the list of specs", printable(key)),
                   suggest(key, keys));
}

std::optional<double> peak_tflops(const GpuSpec& spec, DType dtype) {
  if (dtype == DType::fp32) return spec.fp32_tflops;
  const auto found = spec.tensor_tflops.find(std::string(to_string(dtype)));
  if (found == spec.tensor_tflops.end()) return std::nullopt;
  return found->second;
}

double l2_gbps(const GpuSpec& spec) {
  if (spec.calibration) return spec.calibration->l2_read_gbps;
  return spec.l2_bytes_per_clock * spec.boost_clock_mhz * 1e-3;
}

double load_clock_mhz(const GpuSpec& spec) {
  return spec.calibration ? spec.calibration->load_clock_mhz : spec.boost_clock_mhz;
}

std::optional<double> balance_point(const GpuSpec& spec, DType dtype) {
  const std::optional<double> peak = peak_tflops(spec, dtype);
  if (!peak) return std::nullopt;
  return *peak * 1e3 / spec.hbm_gbps;
}

Datasheet datasheet(const GpuSpec& spec) {
  Datasheet sheet;
  sheet.gpu = spec.names.front();
  sheet.hbm_gbps = spec.hbm_gbps;
  sheet.tensor_tflops = spec.tensor_tflops;
  sheet.tensor_tflops["fp32"] = spec.fp32_tflops;
  sheet.source = spec.source;
  return sheet;
}

Ceilings model_ceilings(const GpuSpec& spec, std::string device) {
  Ceilings roofs;
  roofs.device = std::move(device);
  roofs.source = "model";
  roofs.hbm_copy_gbps = roofs.hbm_read_gbps = roofs.hbm_write_gbps = spec.hbm_gbps;
  roofs.gemm_tflops = spec.tensor_tflops;
  roofs.gemm_tflops["fp32"] = spec.fp32_tflops;
  if (!spec.calibration) return roofs;
  roofs.hbm_copy_gbps = spec.calibration->hbm_copy_gbps;
  roofs.hbm_read_gbps = spec.calibration->hbm_read_gbps;
  roofs.hbm_write_gbps = spec.calibration->hbm_write_gbps;
  for (const auto& [dtype, rate] : spec.calibration->gemm_tflops) roofs.gemm_tflops[dtype] = rate;
  return roofs;
}

DeviceInfo simulated_device(const GpuSpec& spec) {
  DeviceInfo device;
  device.device = "sim:" + spec.key;
  device.name = spec.names.front();
  device.simulated = true;
  device.sm_count = spec.sm_count;
  device.compute_capability = spec.compute_capability;
  device.sm_clock_max_mhz = spec.boost_clock_mhz;
  device.memory_bytes = spec.memory_bytes;
  device.l2_bytes = spec.l2_bytes;
  return device;
}

}  // namespace rooflash
