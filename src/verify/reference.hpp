// The fp64 reference and the emulation of the eager code's rounding points, one output row at a
// time, on host tensors. Independent of every kernel family.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "core/record.hpp"
#include "kernel.hpp"
#include "verify/sampling.hpp"

namespace rooflash {

// Q, K and V of a problem, rounded to its dtype, and room for O and LSE, filled with NaN. Layouts
// as in core/problem.hpp. Those of e4m3 are quantised by the problem's modes.
struct HostCase {
  std::vector<float> q, k, v, o, lse;
  // With e4m3 alone: the scales, as in kernel.hpp, and the inputs before quantising, in bf16.
  std::vector<float> q_scale = {}, k_scale = {}, v_scale = {}, v_log2 = {}, v_mean = {};
  std::vector<float> real_q = {}, real_k = {}, real_v = {};
  HostTensors tensors();
  // Q, K and V before quantising, with the outputs.
  HostTensors real_tensors();
};
HostCase make_host_case(const Problem& problem, std::uint64_t seed);
// Q, K, V and the scales of an e4m3 case, made anew of its inputs before quantising.
void quantize_case(const Problem& problem, HostCase& host);

struct ReferenceRow {
  std::vector<double> o;  // headdim_v values; 0 where no key is visible
  double lse = 0;         // natural log; -inf where no key is visible
};
ReferenceRow reference_row(const Problem& problem, const HostTensors& tensors,
                           const SampledRow& row);

struct EmulatedRow {
  std::vector<float> o;
  float lse = 0;
};
// S, P and O rounded to the dtype, fp32 accumulation; where S is not finite in the dtype it stays
// fp32. With e4m3, S is rounded to bf16, as an FP8 GEMM writes it, and P is rounded before it
// is divided by the row's sum, in units that round the row's largest weight as badly as e4m3 can:
// kernels weigh against other references than the largest score, too.
EmulatedRow emulated_row(const Problem& problem, const HostTensors& tensors, const SampledRow& row);

// Judges O and LSE of `tensors` on at most `max_rows` sampled rows, and looks for NaN and infinity
// in all of O. With e4m3, `real` has the inputs before they were quantised.
VerifyResult verify_on_host(const Problem& problem, const HostTensors& tensors,
                            std::int64_t max_rows, std::uint64_t seed,
                            const HostTensors* real = nullptr);

}  // namespace rooflash
