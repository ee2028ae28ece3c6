// Every mask as one band: query i sees keys j with i + first <= j <= i + last, clipped to the
// sequence. The host turns a Problem's mask into a band, kernels know nothing else.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/problem.hpp"

namespace rooflash {

struct Band {
  std::int64_t first;
  std::int64_t last;
};

inline Band band_of(const Problem& p) {
  const std::int64_t offset = p.mask.align == Align::bottom_right ? p.seqlen_kv - p.seqlen_q : 0;
  Band band{-p.seqlen_q, p.seqlen_kv};  // no limit
  if (p.mask.kind == MaskKind::causal) band.last = offset;
  if (p.mask.kind == MaskKind::window) {
    if (p.mask.left != kUnbounded) band.first = std::max(offset - p.mask.left, band.first);
    if (p.mask.right != kUnbounded) band.last = std::min(offset + p.mask.right, band.last);
  }
  return band;
}

}  // namespace rooflash
