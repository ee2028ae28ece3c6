// Reads files in the format of suites/gpus.json.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/units.hpp"
#include "model/gpu_spec.hpp"
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

int small_integer(const JsonNode& node) {
  constexpr std::int64_t kMost = 100'000;
  if (positive_integer(node) > kMost) {
    node.fail(fmt::format("{} is above {}", printable(node.text), kMost));
  }
  return static_cast<int>(node.as_integer());
}

// Shown in tables and messages as it stands.
std::string line_of_text(const JsonNode& node) {
  constexpr std::size_t kMost = 1000;
  const std::string& text = node.as_string();
  if (text.empty() || printable(text, kMost) != text) {
    node.fail(fmt::format("is empty, longer than {} characters or holds one that cannot be shown",
                          kMost));
  }
  return text;
}

// Part of a device's name: sim:KEY.
std::string spec_key(const JsonNode& node) {
  const std::string& text = node.as_string();
  const bool safe = std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
  });
  if (text.empty() || text.size() > 32 || !safe) {
    node.fail(fmt::format("'{}' is no key", printable(text)),
              "up to 32 of a to z, 0 to 9, '-' and '.', such as h200-oem");
  }
  return text;
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

// The spec that an entry builds on.
const GpuSpec& base_of(const JsonNode& like, std::span<const GpuSpec> known) {
  std::vector<std::string> keys;
  for (const GpuSpec& spec : known) {
    if (spec.key == like.as_string()) return spec;
    keys.push_back(spec.key);
  }
  like.fail(fmt::format("no GPU '{}' in the built-in list", printable(like.as_string())),
            suggest(like.as_string(), keys));
}

GpuSpec parse_spec(const JsonNode& node, std::span<const GpuSpec> known) {
  node.allow_keys({"key",
                   "like",
                   "names",
                   "compute_capability",
                   "sm_count",
                   "memory_bytes",
                   "l2_bytes",
                   "l2_partitions",
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
  const JsonNode* const like = node.find("like");
  GpuSpec spec;
  if (like != nullptr) {
    spec = base_of(*like, known);
    spec.names.clear();
    spec.calibration.reset();  // measured on another card
    spec.validated = false;
  }
  const auto set = [&](const char* key, auto& field, const auto& read) {
    const JsonNode* const value = like != nullptr ? node.find(key) : &node.at(key);
    if (value != nullptr) field = read(*value);
  };
  spec.key = spec_key(node.at("key"));
  for (const JsonNode& name : node.at("names").as_array()) {
    spec.names.push_back(line_of_text(name));
  }
  if (spec.names.empty()) node.at("names").fail("no device name");
  set("compute_capability", spec.compute_capability, small_integer);
  set("sm_count", spec.sm_count, small_integer);
  set("memory_bytes", spec.memory_bytes, positive_integer);
  set("l2_bytes", spec.l2_bytes, positive_integer);
  set("l2_partitions", spec.l2_partitions, positive_integer);
  set("smem_per_sm_bytes", spec.smem_per_sm_bytes, positive_integer);
  set("smem_per_block_bytes", spec.smem_per_block_bytes, positive_integer);
  set("boost_clock_mhz", spec.boost_clock_mhz, positive);
  set("hbm_gbps", spec.hbm_gbps, positive);
  set("l2_bytes_per_clock", spec.l2_bytes_per_clock, positive);
  set("tensor_tflops", spec.tensor_tflops, rates);
  set("fp32_tflops", spec.fp32_tflops, positive);
  set("tensor_ops_per_clock_per_sm", spec.tensor_ops_per_clock_per_sm, rates);
  set("exp_per_clock_per_sm", spec.exp_per_clock_per_sm, positive);
  set("mma_sync_share", spec.mma_sync_share, positive);
  if (spec.mma_sync_share > 1) node.at("mma_sync_share").fail("a share is at most 1");
  set("launch_us", spec.launch_us, positive);
  set("memory_latency_us", spec.memory_latency_us, positive);
  spec.source = line_of_text(node.at("source"));
  if (like != nullptr) spec.source += "; what that does not say is of " + like->text;
  set("validated", spec.validated, [](const JsonNode& value) { return value.as_boolean(); });
  if (const JsonNode* const calibration = node.find("calibration")) {
    spec.calibration = parse_calibration(*calibration);
  }
  if (spec.validated && !spec.calibration) node.fail("validated without a calibration");
  return spec;
}

// Two cards of one name could not be told apart.
void refuse_known_names(const GpuSpec& spec, std::span<const GpuSpec> known, const JsonNode& node) {
  for (const GpuSpec& other : known) {
    if (other.key == spec.key) continue;
    for (const std::string& name : other.names) {
      if (std::find(spec.names.begin(), spec.names.end(), name) == spec.names.end()) continue;
      node.fail(fmt::format("'{}' is the name of {}", name, other.key),
                fmt::format("give the entry the key {} to put it in that one's place", other.key));
    }
  }
}

}  // namespace

std::vector<GpuSpec> parse_gpu_specs(std::string_view text, std::string_view file,
                                     std::span<const GpuSpec> known) {
  const JsonNode root = parse_strict_json(text, file);
  root.allow_keys({"gpus"});
  std::vector<GpuSpec> specs;
  std::set<std::string> taken;  // keys and names
  for (const JsonNode& node : root.at("gpus").as_array()) {
    GpuSpec spec = parse_spec(node, known);
    refuse_known_names(spec, known, node);
    std::vector<std::string> labels = spec.names;
    labels.push_back(spec.key);
    for (const std::string& label : labels) {
      if (!taken.insert(label).second) node.fail(fmt::format("'{}' appears twice", label));
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

}  // namespace rooflash
