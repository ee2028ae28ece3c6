#include "core/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/fp8.hpp"
#include "core/hash.hpp"
#include "core/version.hpp"

namespace rooflash {
namespace {

template <class Enum, std::size_t N>
std::optional<Enum> parse_enum(std::string_view text, const std::array<Enum, N>& values) {
  for (const Enum value : values) {
    if (text == to_string(value)) return value;
  }
  return std::nullopt;
}

constexpr std::array kPasses = {Pass::fwd, Pass::bwd};
constexpr std::array kMaskKinds = {MaskKind::none, MaskKind::causal, MaskKind::window};
constexpr std::array kAligns = {Align::bottom_right, Align::top_left};
constexpr std::array kDistributions = {Distribution::normal,      Distribution::outlier,
                                       Distribution::large,       Distribution::negative,
                                       Distribution::constant,    Distribution::biased,
                                       Distribution::biased_less, Distribution::peaky};

std::string side(std::int64_t bound) {
  return bound == kUnbounded ? "inf" : std::to_string(bound);
}

std::string mask_label(const Mask& mask) {
  if (mask.kind == MaskKind::none) return "full";
  std::string label =
      mask.kind == MaskKind::causal ? "causal" : "win" + side(mask.left) + "." + side(mask.right);
  return mask.align == Align::top_left ? label + "-tl" : label;
}

// Product of sizes, or nothing where it does not fit 62 bits (room for a factor of 2 in bytes).
std::optional<std::int64_t> checked_product(std::initializer_list<std::int64_t> sizes) {
  std::int64_t product = 1;
  for (const std::int64_t size : sizes) {
    if (__builtin_mul_overflow(product, size, &product)) return std::nullopt;
  }
  if (product > std::numeric_limits<std::int64_t>::max() / 16) return std::nullopt;
  return product;
}

}  // namespace

KeyRange visible_keys(const Problem& p, std::int64_t row) {
  if (p.mask.kind == MaskKind::none) return {0, p.seqlen_kv};
  const std::int64_t position =
      p.mask.align == Align::bottom_right ? row + p.seqlen_kv - p.seqlen_q : row;
  const std::int64_t left = p.mask.kind == MaskKind::causal ? kUnbounded : p.mask.left;
  const std::int64_t right = p.mask.kind == MaskKind::causal ? 0 : p.mask.right;
  KeyRange range{0, p.seqlen_kv};
  if (left != kUnbounded) range.begin = std::clamp<std::int64_t>(position - left, 0, p.seqlen_kv);
  if (right != kUnbounded)
    range.end = std::clamp<std::int64_t>(position + right + 1, 0, p.seqlen_kv);
  range.end = std::max(range.begin, range.end);
  return range;
}

double softmax_scale(const Problem& p) {
  return 1.0 / std::sqrt(static_cast<double>(p.headdim));
}

std::int64_t q_elements(const Problem& p) {
  return p.batch * p.seqlen_q * p.heads_q * p.headdim;
}
std::int64_t k_elements(const Problem& p) {
  return p.batch * p.seqlen_kv * p.heads_kv * p.headdim;
}
std::int64_t v_elements(const Problem& p) {
  return p.batch * p.seqlen_kv * p.heads_kv * p.headdim_v;
}
std::int64_t o_elements(const Problem& p) {
  return p.batch * p.seqlen_q * p.heads_q * p.headdim_v;
}
std::int64_t lse_elements(const Problem& p) {
  return p.batch * p.heads_q * p.seqlen_q;
}

DType output_dtype(const Problem& p) {
  return p.dtype == DType::e4m3 ? fp8_modes(p).output : p.dtype;
}

std::int64_t tensor_bytes(const Problem& p) {
  return (q_elements(p) + k_elements(p) + v_elements(p)) * size_bytes(p.dtype) +
         o_elements(p) * size_bytes(output_dtype(p)) + (lse_elements(p) + scale_elements(p)) * 4;
}

std::string invalid_reason(const Problem& p) {
  const std::array<std::pair<const char*, std::int64_t>, 7> sizes = {{
      {"batch", p.batch},
      {"heads_q", p.heads_q},
      {"heads_kv", p.heads_kv},
      {"seqlen_q", p.seqlen_q},
      {"seqlen_kv", p.seqlen_kv},
      {"headdim", p.headdim},
      {"headdim_v", p.headdim_v},
  }};
  for (const auto& [name, size] : sizes) {
    if (size <= 0) return std::string(name) + " " + std::to_string(size) + " is not positive";
  }
  if (p.heads_q % p.heads_kv != 0) {
    return "heads_q " + std::to_string(p.heads_q) + " is not a multiple of heads_kv " +
           std::to_string(p.heads_kv);
  }
  if (p.mask.kind == MaskKind::window && (p.mask.left < kUnbounded || p.mask.right < kUnbounded)) {
    return "a window side is below -1 (-1 means unbounded)";
  }
  const std::int64_t rows = std::max(p.seqlen_q, p.seqlen_kv);
  const std::int64_t width = std::max(p.headdim, p.headdim_v);
  if (!checked_product({p.batch, p.heads_q, rows, width}) ||
      !checked_product({p.batch, p.heads_q, p.seqlen_q, p.seqlen_kv, 8, width})) {
    return "the shape overflows 64-bit counts";
  }
  return p.dtype == DType::e4m3 ? invalid_fp8_options(p) : "";
}

std::string case_id(std::string_view kernel, const Problem& p) {
  std::string id = fmt::format("{}/{}/{}/b{}.h{}.kv{}/q{}.k{}/d{}", kernel, to_string(p.pass),
                               to_string(p.dtype), p.batch, p.heads_q, p.heads_kv, p.seqlen_q,
                               p.seqlen_kv, p.headdim);
  if (p.headdim_v != p.headdim) id += fmt::format("-{}", p.headdim_v);
  id += fmt::format("/{}", mask_label(p.mask));
  if (p.distribution != Distribution::normal) id += fmt::format("/{}", to_string(p.distribution));
  for (const auto& [key, value] : p.options) id += fmt::format("/{}={}", key, value);
  return id;
}

std::string definition_hash(std::string_view kernel, const Problem& p) {
  return hash_hex(case_id(kernel, p) + '|' + std::string(kFlopConvention) + '|' +
                  std::string(kVerifyRule) + '|' + std::string(kInputsVersion));
}

std::string_view to_string(Pass pass) {
  return pass == Pass::fwd ? "fwd" : "bwd";
}

std::string_view to_string(MaskKind kind) {
  switch (kind) {
    case MaskKind::none:
      return "none";
    case MaskKind::causal:
      return "causal";
    case MaskKind::window:
      return "window";
  }
  return "?";
}

std::string_view to_string(Align align) {
  return align == Align::bottom_right ? "bottom-right" : "top-left";
}

std::string_view to_string(Distribution distribution) {
  switch (distribution) {
    case Distribution::normal:
      return "normal";
    case Distribution::outlier:
      return "outlier";
    case Distribution::large:
      return "large";
    case Distribution::negative:
      return "negative";
    case Distribution::constant:
      return "constant";
    case Distribution::biased:
      return "biased";
    case Distribution::biased_less:
      return "biased-0.3";
    case Distribution::peaky:
      return "peaky";
  }
  return "?";
}

std::optional<Pass> parse_pass(std::string_view text) {
  return parse_enum(text, kPasses);
}
std::optional<MaskKind> parse_mask_kind(std::string_view text) {
  return parse_enum(text, kMaskKinds);
}
std::optional<Align> parse_align(std::string_view text) {
  return parse_enum(text, kAligns);
}
std::optional<Distribution> parse_distribution(std::string_view text) {
  return parse_enum(text, kDistributions);
}

}  // namespace rooflash
