#include "model/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "model/l2_model.hpp"

namespace rooflash {
namespace {

// Warps whose instructions wait for each other (mma.sync, then softmax) use the units in turn;
// other warps of the SM fill part of the gaps. By how much the terms together are shortened so, on
// average over the kernels that were measured.
constexpr double kWarpOverlap = 4.0 / 3.0;
constexpr double kSmemBytesPerClock = 128;  // of an SM

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
  if (path == TensorPath::mma_sync) {
    return *peak * spec.mma_sync_share * load_clock_mhz(spec) / spec.boost_clock_mhz;
  }
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

using Term = std::pair<std::string_view, double>;  // name and microseconds

// Time that the SMs compute, by unit; `total` is how long they take together.
struct Compute {
  std::array<Term, 5> terms;
  double total = 0;
};

Compute compute_time(const Problem& problem, const Stage& stage, const GpuSpec& spec) {
  const double clocks_per_us = load_clock_mhz(spec) * spec.sm_count;  // of all SMs
  const double tensor = stage.tensor_ops > 0
                            ? stage.tensor_ops / path_tflops(problem.dtype, stage.path, spec) * 1e-6
                            : 0;
  const double exp = stage.exp_ops / (spec.exp_per_clock_per_sm * clocks_per_us);
  const double fp32_per_clock = spec.fp32_tflops * 1e6 / (2 * spec.boost_clock_mhz);  // of all SMs
  const double fp32 = stage.fp32_ops / (fp32_per_clock * load_clock_mhz(spec));
  const double smem = stage.smem_bytes / (kSmemBytesPerClock * clocks_per_us);
  const double longest = std::max({tensor, exp, fp32, smem});
  // Asynchronous products (wgmma, and the vendor's GEMMs) run while the same tile's softmax does.
  const bool in_turn = stage.path == TensorPath::none || stage.path == TensorPath::mma_sync;
  const double together = in_turn ? std::max(longest, (tensor + exp + fp32 + smem) / kWarpOverlap)
                                  : std::max(tensor, exp + fp32);
  const double waves = std::ceil(stage.tiles / (stage.tiles_per_sm * spec.sm_count));
  const double latency = waves * stage.latencies * spec.memory_latency_us;
  return {
      {{{"tensor", tensor}, {"exp", exp}, {"fp32", fp32}, {"smem", smem}, {"latency", latency}}},
      together * wave_stretch(stage.tiles, spec.sm_count) + latency};
}

}  // namespace

Prediction predict(const Problem& problem, const Traffic& traffic, const GpuSpec& spec) {
  const Ceilings roofs = model_ceilings(spec, {});
  Prediction result;
  result.sm_l2_bytes = static_cast<double>(traffic.read_bytes() + traffic.write_bytes());
  result.hbm_bytes = hbm_bytes(traffic, {spec.l2_bytes, static_cast<double>(spec.sm_count)});
  Term longest{"launch", 0};
  for (const Stage& stage : traffic.stages) {
    const double share = result.sm_l2_bytes > 0 ? stage.sm_l2_bytes / result.sm_l2_bytes : 0;
    const Term hbm{"hbm", share * result.hbm_bytes / *roofs.hbm_copy_gbps * 1e-3};
    const Term l2{"l2", stage.sm_l2_bytes / l2_gbps(spec) * 1e-3};
    const Compute compute = compute_time(problem, stage, spec);
    const double busy = std::max({hbm.second, l2.second, compute.total});
    result.time_us += busy + spec.launch_us;
    // The stage that takes longest names the bound, by its own longest term.
    Term bound =
        std::max(hbm, l2, [](const Term& a, const Term& b) { return a.second < b.second; });
    if (compute.total > bound.second) {
      bound = *std::max_element(compute.terms.begin(), compute.terms.end(),
                                [](const Term& a, const Term& b) { return a.second < b.second; });
    }
    if (busy > std::max(longest.second, spec.launch_us)) longest = {bound.first, busy};
  }
  result.bound = longest.first;
  return result;
}

}  // namespace rooflash
