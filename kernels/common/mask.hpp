// Every mask as one band: query i sees keys j with i + first <= j <= i + last, clipped to the
// sequence. The host turns a Problem's mask into a band, kernels know nothing else. CUDA-free; nvcc
// compiles the constexpr functions for the device too.
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

// Key blocks that a block of query rows works through: [begin, end), none where they are equal.
// Those of [whole_begin, whole_end) need no mask: all their keys exist and every row sees them.
template <class Int>
struct BasicKeyBlocks {
  Int begin, end;
  Int whole_begin, whole_end;
};
using KeyBlocks = BasicKeyBlocks<std::int64_t>;

// Of `rows` query rows from `first_row` on, whose band is [first, last]. Both ends of what a row
// sees grow with the row, so the first and the last row decide. `Int` holds the sum of all of them.
template <class Int>
constexpr BasicKeyBlocks<Int> key_blocks(Int first, Int last, Int first_row, Int rows,
                                         Int seqlen_kv, Int block_kv) {
  const Int last_row = first_row + rows - 1;
  const Int begin = std::max<Int>(first_row + first, 0);
  const Int end = std::min<Int>(last_row + last + 1, seqlen_kv);
  if (begin >= end) return {0, 0, 0, 0};
  const Int whole_begin = std::max<Int>(last_row + first, 0);
  const Int whole_end = std::max<Int>(std::min<Int>(first_row + last + 1, seqlen_kv), 0);
  return {begin / block_kv, (end + block_kv - 1) / block_kv,
          (whole_begin + block_kv - 1) / block_kv, whole_end / block_kv};
}

constexpr KeyBlocks key_blocks(Band band, std::int64_t first_row, std::int64_t rows,
                               std::int64_t seqlen_kv, std::int64_t block_kv) {
  return key_blocks<std::int64_t>(band.first, band.last, first_row, rows, seqlen_kv, block_kv);
}

// Query rows [begin, end) that see some of the `keys` keys from `first_key` on; none where begin is
// not below end.
struct QueryRows {
  std::int64_t begin, end;
};

constexpr QueryRows query_rows(Band band, std::int64_t first_key, std::int64_t keys,
                               std::int64_t seqlen_q) {
  return {std::max<std::int64_t>(first_key - band.last, 0),
          std::min(first_key + keys - band.first, seqlen_q)};
}

// The same band seen from a block of query rows: row r of the block sees keys [begin + r, end + r)
// that exist. Clipped so that 32 bits hold it; `rows` is at least the number of rows.
struct RowBand {
  int begin;
  int end;
};

constexpr RowBand row_band(Band band, std::int64_t first_row, std::int64_t rows,
                           std::int64_t seqlen_kv) {
  return {static_cast<int>(std::clamp(first_row + band.first, -rows, seqlen_kv)),
          static_cast<int>(std::clamp(first_row + band.last + 1, -rows, seqlen_kv))};
}

// Whether each of the first `rows` rows sees all of the `keys` keys from `first_key` on: no mask is
// needed.
constexpr bool sees_all(RowBand band, int rows, int first_key, int keys, int seqlen_kv) {
  return band.begin + rows - 1 <= first_key && first_key + keys <= std::min(band.end, seqlen_kv);
}

}  // namespace rooflash
