// What the host algorithms share: addresses in the b s h d layout, products of SRAM tiles, and the
// choice of a tile that fits, limits. CUDA-free.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "common/two_level_memory.hpp"
#include "core/error.hpp"
#include "core/problem.hpp"
#include "kernel.hpp"

namespace rooflash {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

// Offset of (batch, row, head, 0) in a [batch, seqlen, heads, width] tensor, in elements.
inline std::int64_t row_offset(std::int64_t batch, std::int64_t row, std::int64_t head,
                               std::int64_t seqlen, std::int64_t heads, std::int64_t width) {
  return ((batch * seqlen + row) * heads + head) * width;
}

// sum[i][j] += a[i] . b[j], over all of a's and b's rows and columns.
inline void add_product_transposed(SramTile& sum, const SramTile& a, const SramTile& b) {
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    for (std::int64_t j = 0; j < b.rows(); ++j) {
      float dot = sum.at(i, j);
      for (std::int64_t k = 0; k < a.cols(); ++k) dot += a.at(i, k) * b.at(j, k);
      sum.at(i, j) = dot;
    }
  }
}

// sum[i] += sum over k of a[i][k] b[k], for the columns of b.
inline void add_product(SramTile& sum, const SramTile& a, const SramTile& b) {
  for (std::int64_t i = 0; i < a.rows(); ++i) {
    float* target = sum.row(i);
    for (std::int64_t k = 0; k < b.rows(); ++k) {
      const float weight = a.at(i, k);
      const float* source = b.row(k);
      for (std::int64_t j = 0; j < b.cols(); ++j) target[j] += weight * source[j];
    }
  }
}

// `tile` with both sides halved until `needed_bytes(tile)` is at most `sram_bytes`. Throws
// UsageError where not even a 1 x 1 tile fits.
template <class NeededBytes>
Tile fit_tile(Tile tile, std::int64_t sram_bytes, NeededBytes needed_bytes) {
  while (needed_bytes(tile) > sram_bytes) {
    if (tile.block_q == 1 && tile.block_kv == 1) {
      throw UsageError("the smallest tile needs " + std::to_string(needed_bytes(tile)) +
                           " bytes of SRAM and there are " + std::to_string(sram_bytes),
                       "use a larger --sram");
    }
    tile = {std::max<std::int64_t>(1, tile.block_q / 2),
            std::max<std::int64_t>(1, tile.block_kv / 2)};
  }
  return tile;
}

// Why a family that copies 16 bytes at a time and counts rows and CTAs in 32 bits does not take the
// problem; "" where it does. It counts `ctas`, one for each of what `each` names; 2^30 rows leave
// room for the last tile.
inline std::string tiled_limits(std::string_view family, const Problem& p, std::int64_t ctas,
                                std::string_view each, int most_rows_log2 = 30) {
  const std::int64_t most_rows = std::int64_t{1} << most_rows_log2;
  const std::string name(family);
  const std::int64_t step = p.dtype == DType::e4m3 ? 16 : 8;
  if (p.headdim % step != 0 || p.headdim_v % step != 0) {
    return name + " loads 16 bytes at a time: head dims must be multiples of " +
           std::to_string(step);
  }
  if (p.seqlen_q > most_rows || p.seqlen_kv > most_rows) {
    return name + " takes at most 2^" + std::to_string(most_rows_log2) + " queries and keys";
  }
  if (ctas > std::numeric_limits<std::int32_t>::max()) {
    return name + " takes at most 2^31 - 1 " + std::string(each);
  }
  return {};
}

// A stream that is only read, or only written, as often as `bytes` says.
inline Stream read_stream(std::string_view tensor, std::int64_t unique, std::int64_t bytes,
                          std::int64_t shared_by_tiles, std::int64_t row_bytes = 0,
                          std::int64_t piece_bytes = 0) {
  return {tensor, unique, bytes, 0, shared_by_tiles, row_bytes, piece_bytes};
}
inline Stream write_stream(std::string_view tensor, std::int64_t bytes, std::int64_t row_bytes = 0,
                           std::int64_t piece_bytes = 0) {
  return {tensor, bytes, 0, bytes, 1, row_bytes, piece_bytes};
}

}  // namespace rooflash
