#include "model/predict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/error.hpp"
#include "model/l2_model.hpp"

namespace rooflash {
namespace {

// Warps whose instructions wait for each other (mma.sync, then softmax) use the units in turn;
// other warps of the SM fill part of the gaps. By how much the terms together are shortened so, on
// average over the kernels that were measured.
constexpr double kWarpOverlap = 1.5;
constexpr double kSmemBytesPerClock = 128;  // of an SM

// Memory and the SMs work side by side, but not from the first byte to the last: of the shorter of
// their times, this share is not hidden by the longer.
constexpr double kNotHidden = 0.2;

// Bytes that an SM moves in a clock where operands are not aligned to 16 bytes, and the vendor's
// GEMMs move elements one by one (2 bytes a lane) or in pairs. Set on the odd lengths of suites
// held-out and held-out-2.
double narrow_bytes_per_clock(double lane_bytes) {
  return lane_bytes < 4 ? 4.9 : 8.2;
}

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

// Bytes of the 32-byte sectors that a stream's requests touch. A request asks for `piece_bytes` of
// a row; where that does not start with a sector, it touches one more.
double sector_bytes(const Stream& stream) {
  const auto bytes = static_cast<double>(stream.read_bytes + stream.write_bytes);
  if (stream.row_bytes == 0) return bytes;
  const std::int64_t row = stream.row_bytes;
  const std::int64_t piece = std::min(stream.piece_bytes, row);
  const std::int64_t rest = row % piece;
  const auto sectors = [](std::int64_t part, std::int64_t shift) {
    return (part + shift + 31) / 32;
  };
  const auto of_row = [&](std::int64_t shift) {
    const std::int64_t whole = row / piece;
    return whole * sectors(piece, shift) + (rest > 0 ? sectors(rest, shift) : 0);
  };
  // Rows follow each other, so their starts are spread over the multiples of this.
  const auto step = std::gcd(row, std::int64_t{32});
  const double aligned = static_cast<double>(step) / 32;
  return bytes * 32 / static_cast<double>(row) *
         (aligned * static_cast<double>(of_row(0)) +
          (1 - aligned) * static_cast<double>(of_row(std::min<std::int64_t>(step, 16))));
}

// How long the fullest SM takes over the work of its share, `tiles` spread evenly and the largest
// among them: 1 when the last wave is full and all tiles alike. Tiles of one SM that run side by
// side fill each other's gaps, one alone waits in them.
double stretch(const Stage& stage, int sm_count, double overlap) {
  if (stage.tiles < 1) return 1;
  const double share = stage.tiles / sm_count;
  const double most = std::ceil(share);
  const bool one_is_alone = std::fmod(most, 2.0) > 0;
  const double busy = most + (one_is_alone ? overlap - 1 : 0);
  return std::max(busy, stage.largest_tile * overlap) / share;
}

using Term = std::pair<std::string_view, double>;  // name and microseconds

// Time that the SMs compute, by unit; `total` is how long they take together.
struct Compute {
  std::array<Term, 6> terms;
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
  const double narrow =
      stage.lane_bytes < 16
          ? stage.sm_l2_bytes / (narrow_bytes_per_clock(stage.lane_bytes) * clocks_per_us)
          : 0;
  const double longest = std::max({tensor, exp, fp32, smem});
  // Asynchronous products (wgmma, and the vendor's GEMMs) run while the same tile's softmax does.
  const bool in_turn = stage.path == TensorPath::none || stage.path == TensorPath::mma_sync;
  const double together = in_turn ? std::max(longest, (tensor + exp + fp32 + smem) / kWarpOverlap)
                                  : std::max({tensor, exp + fp32, narrow});
  const double waves = std::ceil(stage.tiles / (stage.tiles_per_sm * spec.sm_count));
  const double latency = waves * stage.latencies * spec.memory_latency_us;
  return {{{{"tensor", tensor},
            {"exp", exp},
            {"fp32", fp32},
            {"smem", smem},
            {"narrow loads", narrow},
            {"latency", latency}}},
          together * stretch(stage, spec.sm_count, in_turn ? kWarpOverlap : 1) + latency};
}

}  // namespace

Prediction predict(const Problem& problem, const Traffic& traffic, const GpuSpec& spec) {
  const Ceilings roofs = model_ceilings(spec, {});
  Prediction result;
  for (const Stream& stream : traffic.streams) result.sm_l2_bytes += sector_bytes(stream);
  const auto moved = static_cast<double>(traffic.read_bytes() + traffic.write_bytes());
  result.hbm_bytes = hbm_bytes(traffic, {spec.l2_bytes, static_cast<double>(spec.sm_count),
                                         static_cast<double>(spec.l2_partitions)});
  Term longest{"launch", 0};
  for (const Stage& stage : traffic.stages) {
    const double share = moved > 0 ? stage.sm_l2_bytes / moved : 0;
    const Term hbm{"hbm", share * result.hbm_bytes / *roofs.hbm_copy_gbps * 1e-3};
    const Term l2{"l2", share * result.sm_l2_bytes / l2_gbps(spec) * 1e-3};
    const Compute compute = compute_time(problem, stage, spec);
    const double memory = std::max(hbm.second, l2.second);
    const double busy =
        std::max(memory, compute.total) + kNotHidden * std::min(memory, compute.total);
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
