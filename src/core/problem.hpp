// The attention problem: shape, dtype, mask, pass and input distribution. Plain data, no CUDA.
//
//   S = scale * Q K^T,  P = softmax(S over the visible keys),  O = P V,  scale = 1 / sqrt(headdim)
//
// Tensors are row-major: Q [batch, seqlen_q, heads_q, headdim], K [batch, seqlen_kv, heads_kv,
// headdim], V [batch, seqlen_kv, heads_kv, headdim_v], O [batch, seqlen_q, heads_q, headdim_v],
// LSE [batch, heads_q, seqlen_q] in fp32, natural log. Query head h reads KV head
// h / (heads_q / heads_kv).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.hpp"

namespace rooflash {

enum class Pass { fwd, bwd };
enum class MaskKind { none, causal, window };
// Which corner a mask is anchored to where seqlen_q != seqlen_kv. bottom_right: query i stands at
// key i + seqlen_kv - seqlen_q. top_left: query i stands at key i.
enum class Align { bottom_right, top_left };
enum class Distribution { normal, outlier, large, negative, constant, biased, biased_less, peaky };

inline constexpr std::int64_t kUnbounded = -1;

struct Mask {
  MaskKind kind = MaskKind::none;
  Align align = Align::bottom_right;
  // Keys visible to the left and right of the query's own position, inclusive. Only for `window`;
  // kUnbounded means no limit on that side.
  std::int64_t left = kUnbounded;
  std::int64_t right = kUnbounded;
  bool operator==(const Mask&) const = default;
};

struct Problem {
  Pass pass = Pass::fwd;
  DType dtype = DType::bf16;
  std::int64_t batch = 1;
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 1;
  std::int64_t seqlen_q = 1;
  std::int64_t seqlen_kv = 1;
  std::int64_t headdim = 64;    // of Q and K
  std::int64_t headdim_v = 64;  // of V and O
  Mask mask;
  Distribution distribution = Distribution::normal;
  // Modes of a family that change what is computed (e.g. fp8 scale). Empty for most.
  std::map<std::string, std::string> options;
  bool operator==(const Problem&) const = default;
};

// Keys [begin, end) visible to query `row`; begin == end where there is none.
struct KeyRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
KeyRange visible_keys(const Problem& problem, std::int64_t row);

// Softmax scale: 1 / sqrt(headdim).
double softmax_scale(const Problem& problem);

// Elements of each tensor.
std::int64_t q_elements(const Problem& problem);
std::int64_t k_elements(const Problem& problem);
std::int64_t v_elements(const Problem& problem);
std::int64_t o_elements(const Problem& problem);
std::int64_t lse_elements(const Problem& problem);
// Type of O: what the options of e4m3 inputs say (core/fp8.hpp), every other type its own.
DType output_dtype(const Problem& problem);
// Bytes of Q, K, V, O and LSE together, and of e4m3's scales.
std::int64_t tensor_bytes(const Problem& problem);

// Why the problem makes no sense ("heads_q 33 is not a multiple of heads_kv 2"); empty when fine.
// Checks signs, divisibility, window bounds, overflow of the element counts and the options of e4m3
// problems (core/fp8.hpp).
std::string invalid_reason(const Problem& problem);

// Stable, greppable, file-safe key of a case, without device and round:
//   fa2/fwd/bf16/b4.h16.kv16/q8192.k8192/d128/causal
// headdim_v appears only where it differs (d192-128), the mask as full, causal, causal-tl,
// win255.0, win255.0-tl ("inf" for an unbounded side), the distribution and options only where not
// the default (.../causal/outlier/scale=block).
std::string case_id(std::string_view kernel, const Problem& problem);

// 16 hex digits over everything that defines the case (kernel, problem, FLOP convention and
// verification rule versions). Rows with different hashes are not comparable.
std::string definition_hash(std::string_view kernel, const Problem& problem);

std::string_view to_string(Pass pass);
std::string_view to_string(MaskKind kind);
std::string_view to_string(Align align);  // "bottom-right", "top-left"
std::string_view to_string(Distribution distribution);
std::optional<Pass> parse_pass(std::string_view text);
std::optional<MaskKind> parse_mask_kind(std::string_view text);
std::optional<Align> parse_align(std::string_view text);
std::optional<Distribution> parse_distribution(std::string_view text);

}  // namespace rooflash
