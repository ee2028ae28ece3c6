// How a problem of e4m3 tensors is quantised and summed up: its options, and the scales that go
// with the tensors. Real values are
//
//   Q = q_scale q,   K = k_scale k,   V = v_scale 2^v_log2 v + v_mean,   O = o_unit o
//
// with one q_scale for kScaleRowsQ queries of a head, one k_scale and v_log2 for kScaleRowsKv keys,
// one v_scale and v_mean (a value a channel, 0 unless V is smoothed) for a KV head. o_unit is 1, or
// v_scale where O is e4m3 too: O is a mean of V, so that nothing of it goes beyond e4m3's largest
// (unless V is smoothed: see unusable_modes).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/problem.hpp"

namespace rooflash {

// Whole tiles of the kernels lie in them: 64 queries a warpgroup, key blocks of 64 or 96.
inline constexpr std::int64_t kScaleRowsQ = 64;
inline constexpr std::int64_t kScaleRowsKv = 192;

// What shares a scale: the tensor, a head of a batch item, or the rows named above.
enum class ScaleSpan { tensor, head, block };

struct Fp8Modes {
  ScaleSpan scale = ScaleSpan::block;  // option scale=tensor|head|block
  // Q and K are multiplied by a random orthogonal matrix before they are quantised, which leaves
  // the scores and spreads outliers (hadamard=on|off).
  bool hadamard = false;
  // Sums are kept beside the tensor cores', which hold fewer bits (accum=exact|fast).
  bool exact_accumulation = true;
  // Weights are taken against a row's true maximum so far, whose weight e4m3 then holds exactly,
  // and not against a reference that is kept while it serves (max=lazy|true).
  bool true_maximum = false;
  // The mean of V over the keys of a head is taken out of V before it is quantised, and added to O
  // (smooth=off|on).
  bool smooth_values = false;
  DType output = DType::bf16;  // of O (out=bf16|fp16|e4m3)
  bool operator==(const Fp8Modes&) const = default;
};

// Names of the options, and the values of one of them, the default first.
inline constexpr std::string_view kFp8Options[] = {"scale", "hadamard", "accum",
                                                   "max",   "smooth",   "out"};
bool is_fp8_option(std::string_view name);
std::span<const std::string_view> fp8_values(std::string_view option);

// What an option is set to, its default where the problem does not say; "" for other types than
// e4m3.
std::string_view fp8_value(const Problem& problem, std::string_view option);

// The modes that the options of an e4m3 problem say, which invalid_reason() has passed.
Fp8Modes fp8_modes(const Problem& problem);

// What is wrong with these options of an e4m3 problem; "" where nothing is. Names it does not know
// are left to the kernels. Defaults are stated by absence, so that a case has one name.
std::string invalid_fp8_options(const Problem& problem);

// Why the modes of the problem do not go together with its shape or with each other; "" where they
// do. No kernel may take such a problem: its tensors cannot be made, or not be judged.
std::string unusable_modes(const Problem& problem);

// Takes out the options that state a default.
void drop_fp8_defaults(Problem& problem);

// Scales of a head.
inline std::int64_t q_scale_blocks(const Problem& p) {
  return (p.seqlen_q + kScaleRowsQ - 1) / kScaleRowsQ;
}
inline std::int64_t kv_scale_blocks(const Problem& p) {
  return (p.seqlen_kv + kScaleRowsKv - 1) / kScaleRowsKv;
}

// Elements of v_mean; 0 where V is not smoothed, and for other types.
std::int64_t v_mean_elements(const Problem& problem);

// All scales of an e4m3 problem, and v_mean; 0 for other types.
std::int64_t scale_elements(const Problem& problem);

}  // namespace rooflash
