#include "model/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "model/l2_model.hpp"

namespace rooflash {
namespace {

// TFLOPS that the path's instructions reach on this card for inputs of `dtype`.
double path_tflops(DType dtype, TensorPath path, const GpuSpec& spec) {
  // Without tensor instructions, products run on the fp32 units whatever the input type.
  const DType unit = path == TensorPath::none ? DType::fp32 : dtype;
  const std::optional<double> peak = peak_tflops(spec, unit);
  if (!peak) {
    throw Error(ExitCode::incomplete,
                fmt::format("{} has no tensor cores for {}", spec.names.front(), to_string(dtype)),
                "choose a dtype that `rooflash list gpus` shows for this card");
  }
  if (path == TensorPath::mma_sync) return *peak * spec.mma_sync_share;
  const Ceilings roofs = model_ceilings(spec, {});
  const auto measured = roofs.gemm_tflops.find(std::string(to_string(unit)));
  return measured != roofs.gemm_tflops.end() ? measured->second : *peak;
}

// How much longer whole waves of tiles take than the work alone: 1 when the last wave is full.
double wave_stretch(double tiles, int sm_count) {
  if (tiles < 1) return 1;
  const double waves = tiles / sm_count;
  return std::ceil(waves) / waves;
}

}  // namespace

Prediction predict(const Problem& problem, const Traffic& traffic, const GpuSpec& spec) {
  const double clock_hz = spec.boost_clock_mhz * 1e6;
  const double stretch = wave_stretch(traffic.tiles, spec.sm_count);
  const double hbm_gbps = *model_ceilings(spec, {}).hbm_copy_gbps;

  Prediction result;
  result.sm_l2_bytes = static_cast<double>(traffic.read_bytes() + traffic.write_bytes());
  result.hbm_bytes = hbm_bytes(traffic, {spec.l2_bytes, static_cast<double>(spec.sm_count)});

  const double hbm_us = result.hbm_bytes / hbm_gbps * 1e-3;
  const double l2_us = stretch * result.sm_l2_bytes / (spec.l2_bytes_per_clock * clock_hz) * 1e6;
  const double tensor_us =
      traffic.tensor_ops > 0
          ? stretch * traffic.tensor_ops / path_tflops(problem.dtype, traffic.path, spec) * 1e-6
          : 0;
  const double exp_us =
      stretch * traffic.exp_ops / (spec.exp_per_clock_per_sm * spec.sm_count * clock_hz) * 1e6;
  const double launch_us = traffic.launches * spec.launch_us;
  // Only asynchronous tensor instructions run while the same tile's softmax does; with the others
  // the two take turns.
  const double compute_us =
      traffic.path == TensorPath::wgmma ? std::max(tensor_us, exp_us) : tensor_us + exp_us;
  result.time_us = std::max({hbm_us, l2_us, compute_us}) + launch_us;

  const std::pair<double, std::string_view> terms[] = {{hbm_us, "hbm"},
                                                       {l2_us, "l2"},
                                                       {tensor_us, "tensor"},
                                                       {exp_us, "exp"},
                                                       {launch_us, "launch"}};
  result.bound = std::max_element(std::begin(terms), std::end(terms), [](auto& a, auto& b) {
                   return a.first < b.first;
                 })->second;
  return result;
}

}  // namespace rooflash
