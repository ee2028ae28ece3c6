// Specifications of known GPUs, from suites/gpus.json (embedded) and a file of the user's. A card
// that is in neither has no spec: nothing here guesses a roof.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/dtype.hpp"
#include "core/record.hpp"

namespace rooflash {

// Rates measured on a real card; the time model of that card was compared with measurements.
struct Calibration {
  double hbm_copy_gbps = 0;  // bytes read plus bytes written
  double hbm_read_gbps = 0;
  double hbm_write_gbps = 0;
  double l2_read_gbps = 0;
  double load_clock_mhz = 0;                  // SM clock while matrix products run
  std::map<std::string, double> gemm_tflops;  // best GEMM by dtype
  std::string source;
};

struct GpuSpec {
  std::string key;                 // "h200", as in sim:h200
  std::vector<std::string> names;  // exact CUDA device names: "NVIDIA H200"
  int compute_capability = 0;      // 90 for 9.0
  int sm_count = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t l2_partitions = 1;  // each keeps a copy of what its own SMs read
  std::int64_t smem_per_sm_bytes = 0;
  std::int64_t smem_per_block_bytes = 0;  // opt-in maximum
  double boost_clock_mhz = 0;     // highest SM clock; a datasheet peak may assume a lower one
  double hbm_gbps = 0;            // datasheet memory rate (GDDR on the cards that have it)
  double l2_bytes_per_clock = 0;  // whole GPU, L2 to SMs
  std::map<std::string, double> tensor_tflops;  // dense, fp32 accumulation: bf16, fp16, e4m3, tf32
  double fp32_tflops = 0;                       // without tensor cores
  std::map<std::string, double> tensor_ops_per_clock_per_sm;  // multiply-add = 2
  double exp_per_clock_per_sm = 0;
  double mma_sync_share = 1;  // of the tensor rate, reachable by mma.sync instead of wgmma/tcgen05
  double launch_us = 0;       // one dependent launch in a busy stream
  double memory_latency_us = 0;  // of a round trip to device memory under load
  std::string source;
  std::optional<Calibration> calibration;
  bool validated = false;  // the time model was compared with measurements on this card
};

// Names the user's file; the driver sets it for its workers.
inline constexpr const char* kGpusVariable = "ROOFLASH_GPUS";

// Puts the specs of the file `path`, whose text is `text`, over the built-in ones: one of a
// built-in key takes its place, the others are added. Their source begins with the file's name.
// Call it before anything else asks for a spec. Throws UsageError with file and line.
void add_gpu_specs(std::string_view text, const std::string& path);

// All specs, in file order. Throws UsageError where the embedded file is malformed.
std::span<const GpuSpec> gpu_specs();

// By key ("h200") or by exact CUDA device name; nullptr where unknown.
const GpuSpec* find_gpu(std::string_view key);
const GpuSpec* find_gpu_by_name(std::string_view name);

// `find_gpu`, or a UsageError that suggests the nearest key.
const GpuSpec& require_gpu(std::string_view key);

// Parses a spec file (strict: unknown or missing keys, wrong types and duplicates are a UsageError
// with `file`:line). An entry with "like" takes what it does not say from the spec of that key in
// `known`, but for its names, source and calibration. A name that `known` has under another key is
// an error.
std::vector<GpuSpec> parse_gpu_specs(std::string_view text, std::string_view file,
                                     std::span<const GpuSpec> known = {});

// Dense datasheet TFLOPS for inputs of `dtype`: tensor cores, except fp32, which runs without them.
// Empty where the card has none for that type.
std::optional<double> peak_tflops(const GpuSpec& spec, DType dtype);

// GB/s between L2 and the SMs, and the SM clock under load: measured where the card is calibrated,
// else from the specification.
double l2_gbps(const GpuSpec& spec);
double load_clock_mhz(const GpuSpec& spec);

// FLOP per HBM byte at which a kernel leaves the memory roof for the tensor roof. Empty as above.
std::optional<double> balance_point(const GpuSpec& spec, DType dtype);

Datasheet datasheet(const GpuSpec& spec);

// The roofs of a simulated card: calibrated where measured, else the datasheet's. Source "model".
Ceilings model_ceilings(const GpuSpec& spec, std::string device);

// The simulated card as a device of the record: "sim:h200".
DeviceInfo simulated_device(const GpuSpec& spec);

}  // namespace rooflash
