#include "model/cost.hpp"

#include <algorithm>

#include "core/version.hpp"

namespace rooflash {
namespace {

// Sum over rows i in [0, rows) of the keys j in [0, keys) with j < i + shift: the values i + shift
// rise by one a row and are clamped to [0, keys], so they are zeros, an arithmetic series, and full
// rows.
std::int64_t pairs_below(std::int64_t rows, std::int64_t keys, std::int64_t shift) {
  const std::int64_t full_rows = std::clamp<std::int64_t>(rows + shift - keys, 0, rows);
  const std::int64_t first = std::max<std::int64_t>(shift, 1);
  const std::int64_t last = std::min(rows + shift, keys) - 1;
  std::int64_t series = 0;
  if (first <= last) {
    const std::int64_t count = last - first + 1;
    const std::int64_t ends = first + last;
    series = count % 2 == 0 ? count / 2 * ends : ends / 2 * count;  // one of them is even
  }
  return full_rows * keys + series;
}

double per_pair(const Problem& p) {
  const auto d = static_cast<double>(p.headdim);
  const auto dv = static_cast<double>(p.headdim_v);
  return p.pass == Pass::fwd ? 2 * (d + dv) : 2 * (3 * d + 2 * dv);
}

double heads(const Problem& p) {
  return static_cast<double>(p.batch) * static_cast<double>(p.heads_q);
}

}  // namespace

std::int64_t unmasked_pairs(const Problem& p) {
  const std::int64_t rows = p.seqlen_q;
  const std::int64_t keys = p.seqlen_kv;
  if (p.mask.kind == MaskKind::none) return rows * keys;
  // A side longer than this reaches every key; the bound keeps the sums below free of overflow.
  const std::int64_t reach = rows + keys;
  const std::int64_t anchor = p.mask.align == Align::bottom_right ? keys - rows : 0;
  const bool causal = p.mask.kind == MaskKind::causal;
  const auto side = [&](std::int64_t bound) {
    return bound == kUnbounded ? reach : std::min(bound, reach);
  };
  const std::int64_t left = causal ? reach : side(p.mask.left);
  const std::int64_t right = causal ? 0 : side(p.mask.right);
  return pairs_below(rows, keys, anchor + right + 1) - pairs_below(rows, keys, anchor - left);
}

double flops(const Problem& p) {
  return per_pair(p) * heads(p) * static_cast<double>(unmasked_pairs(p));
}

std::int64_t compulsory_bytes(const Problem& p) {
  const std::int64_t inputs = q_elements(p) + k_elements(p) + v_elements(p);
  const std::int64_t input_size = size_bytes(p.dtype);
  const std::int64_t output_size = size_bytes(output_dtype(p));
  if (p.pass == Pass::fwd) return inputs * input_size + o_elements(p) * output_size;
  const std::int64_t gradients = inputs * output_size;  // dQ, dK and dV
  return inputs * input_size + 2 * o_elements(p) * output_size + gradients;
}

ModelFigures model_figures(const Problem& p) {
  ModelFigures figures;
  figures.convention = std::string(kFlopConvention);
  figures.pairs = unmasked_pairs(p);
  figures.flops = flops(p);
  figures.compulsory_bytes = compulsory_bytes(p);
  return figures;
}

}  // namespace rooflash
