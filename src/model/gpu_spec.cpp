#include "model/gpu_spec.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/embedded.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/strict_json.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

double positive(const JsonNode& node) {
  const double value = node.as_number();
  if (!(value > 0)) node.fail(fmt::format("{} is not positive", node.text));
  return value;
}

std::int64_t positive_integer(const JsonNode& node) {
  if (node.as_integer() <= 0) node.fail(fmt::format("{} is not positive", node.text));
  return node.as_integer();
}

// {"bf16": 989.4, ...}; tf32 is a tensor-core type of fp32 inputs, no DType.
std::map<std::string, double> rates(const JsonNode& node) {
  node.allow_keys({"bf16", "fp16", "e4m3", "tf32"});
  std::map<std::string, double> result;
  for (const auto& [dtype, value] : node.as_object()) result[dtype] = positive(value);
  return result;
}

Calibration parse_calibration(const JsonNode& node) {
  node.allow_keys({"hbm_copy_gbps", "hbm_read_gbps", "hbm_write_gbps", "l2_read_gbps",
                   "load_clock_mhz", "gemm_tflops", "source"});
  Calibration calibration;
  calibration.hbm_copy_gbps = positive(node.at("hbm_copy_gbps"));
  calibration.hbm_read_gbps = positive(node.at("hbm_read_gbps"));
  calibration.hbm_write_gbps = positive(node.at("hbm_write_gbps"));
  calibration.l2_read_gbps = positive(node.at("l2_read_gbps"));
  calibration.load_clock_mhz = positive(node.at("load_clock_mhz"));
  calibration.gemm_tflops = rates(node.at("gemm_tflops"));
  calibration.source = node.at("source").as_string();
  return calibration;
}

GpuSpec parse_spec(const JsonNode& node) {
  node.allow_keys({"key",
                   "names",
                   "compute_capability",
                   "sm_count",
                   "memory_bytes",
                   "l2_bytes",
                   "smem_per_sm_bytes",
                   "smem_per_block_bytes",
                   "boost_clock_mhz",
                   "hbm_gbps",
                   "l2_bytes_per_clock",
                   "tensor_tflops",
                   "fp32_tflops",
                   "tensor_ops_per_clock_per_sm",
                   "exp_per_clock_per_sm",
                   "mma_sync_share",
                   "launch_us",
                   "memory_latency_us",
                   "source",
                   "validated",
                   "calibration"});
  GpuSpec spec;
  spec.key = node.at("key").as_string();
  for (const JsonNode& name : node.at("names").as_array()) spec.names.push_back(name.as_string());
  if (spec.names.empty()) node.at("names").fail("no device name");
  spec.compute_capability = static_cast<int>(positive_integer(node.at("compute_capability")));
  spec.sm_count = static_cast<int>(positive_integer(node.at("sm_count")));
  spec.memory_bytes = positive_integer(node.at("memory_bytes"));
  spec.l2_bytes = positive_integer(node.at("l2_bytes"));
  spec.smem_per_sm_bytes = positive_integer(node.at("smem_per_sm_bytes"));
  spec.smem_per_block_bytes = positive_integer(node.at("smem_per_block_bytes"));
  spec.boost_clock_mhz = positive(node.at("boost_clock_mhz"));
  spec.hbm_gbps = positive(node.at("hbm_gbps"));
  spec.l2_bytes_per_clock = positive(node.at("l2_bytes_per_clock"));
  spec.tensor_tflops = rates(node.at("tensor_tflops"));
  spec.fp32_tflops = positive(node.at("fp32_tflops"));
  spec.tensor_ops_per_clock_per_sm = rates(node.at("tensor_ops_per_clock_per_sm"));
  spec.exp_per_clock_per_sm = positive(node.at("exp_per_clock_per_sm"));
  spec.mma_sync_share = positive(node.at("mma_sync_share"));
  if (spec.mma_sync_share > 1) node.at("mma_sync_share").fail("a share is at most 1");
  spec.launch_us = positive(node.at("launch_us"));
  spec.memory_latency_us = positive(node.at("memory_latency_us"));
  spec.source = node.at("source").as_string();
  spec.validated = node.at("validated").as_boolean();
  if (const JsonNode* const calibration = node.find("calibration")) {
    spec.calibration = parse_calibration(*calibration);
  }
  if (spec.validated && !spec.calibration) node.fail("validated without a calibration");
  return spec;
}

}  // namespace

std::vector<GpuSpec> parse_gpu_specs(std::string_view text, std::string_view file) {
  const JsonNode root = parse_strict_json(text, file);
  root.allow_keys({"gpus"});
  std::vector<GpuSpec> specs;
  std::set<std::string> taken;  // keys and names
  for (const JsonNode& node : root.at("gpus").as_array()) {
    GpuSpec spec = parse_spec(node);
    std::vector<std::string> labels = spec.names;
    labels.push_back(spec.key);
    for (const std::string& label : labels) {
      if (!taken.insert(label).second) node.fail(fmt::format("'{}' appears twice", label));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

std::span<const GpuSpec> gpu_specs() {
  constexpr std::string_view kFile = "suites/gpus.json";
  static const std::vector<GpuSpec> specs = parse_gpu_specs(embedded(kFile).value(), kFile);
  return specs;
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
