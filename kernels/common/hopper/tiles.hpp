// Which of a family's compiled tiles a problem takes, and why. CUDA-free; the host code of the GPU
// side and the traffic models read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

#include "common/hopper/config.hpp"
#include "common/hopper/schedule.hpp"
#include "core/problem.hpp"

namespace rooflash::hopper {

// Tables of these are in the order of head dims. The last of a head dim serves every problem, those
// before it the ones they are made for.
template <class TileConfig>
struct BasicCompiledTile {
  TileConfig config;
  bool (*serves)(const Problem&);
  std::string_view why;
};
using CompiledTile = BasicCompiledTile<Config>;

constexpr bool any(const Problem&) {
  return true;
}

// Index of the tile that `p` takes: the first that serves it, among those of the smallest head dim
// that holds it.
template <class Tiles>
constexpr std::size_t choose(const Tiles& tiles, const Problem& p) {
  const std::int64_t width = std::max(p.headdim, p.headdim_v);
  for (std::size_t i = 0; i < std::size(tiles); ++i) {
    if (width <= tiles[i].config.headdim && tiles[i].serves(p)) return i;
  }
  return std::size(tiles) - 1;
}

// Whether query tiles in pairs of CTAs are faster at head dim 256. They wait for one another, most
// where tiles end, so that keys must be many; and a pair's rows are to be there, but for a
// sixteenth. On an H200 pairs gain 2 to 6 % of a lasting load there, and lose at smaller head dims.
inline constexpr std::string_view kWhyPair = "two CTAs share K and V";
inline bool pairs_pay(const Problem& p) {
  constexpr std::int64_t kLeastKeys = 1024;
  constexpr std::int64_t kPairRows = 4 * std::int64_t{kWarpgroupRows};
  const auto seen = [&](std::int64_t query) {
    const KeyRange keys = visible_keys(p, query);
    return std::max<std::int64_t>(keys.end - keys.begin, 0);
  };
  const std::int64_t last = p.seqlen_q - 1;
  const std::int64_t mean = (seen(0) + 2 * seen(last / 2) + seen(last)) / 4;
  const std::int64_t rows = (p.seqlen_q + kPairRows - 1) / kPairRows * kPairRows;
  return mean >= kLeastKeys && 16 * (rows - p.seqlen_q) <= rows;
}

// Tiles that fa3 and rf have in common: FlashAttention-3's softmax, for short queries, whose time
// is that of reading K and V. Their kernels are in split.cu.
inline constexpr std::string_view kWhySplit = "short queries";
inline constexpr CompiledTile kSplitTiles[] = {
    {{64, 4, 64, 2, 4, false, false, true}, any, kWhySplit},
    {{96, 3, 64, 2, 2, false, false, true}, any, kWhySplit},
    {{128, 3, 64, 2, 2, false, false, true}, any, kWhySplit},
    {{192, 2, 64, 1, 2, false, false, true}, any, kWhySplit},
    {{256, 2, 64, 1, 2, true, false, true}, any, kWhySplit},
};

// Whether `p` is better off with `split`: there are too few query tiles for the SMs and keys enough
// to cut; or enough tiles, which packing makes half as many or fewer.
inline bool takes_split(const Problem& p, const Config& split) {
  if (splits_for(p, split) > 1) return true;
  const std::int64_t packed = packed_heads(p, split);
  const auto tiles = [&](std::int64_t heads) {
    const std::int64_t rows = p.seqlen_q * heads;
    return (rows + split.block_m() - 1) / split.block_m() * p.batch * p.heads_q / heads;
  };
  return tiles(packed) >= kSmCount && 2 * tiles(packed) <= tiles(1);
}

inline const CompiledTile& split_tile(const Problem& p) {
  return kSplitTiles[choose(kSplitTiles, p)];
}

// The tile that `p` takes, of a family's own and those with split keys.
inline const CompiledTile& choose_with_split(std::span<const CompiledTile> tiles,
                                             const Problem& p) {
  const CompiledTile& split = split_tile(p);
  return takes_split(p, split.config) ? split : tiles[choose(tiles, p)];
}

// What a block may use on sm_90 is 227 KiB.
template <class Tiles>
constexpr bool all_fit(const Tiles& tiles) {
  return std::all_of(std::begin(tiles), std::end(tiles),
                     [](const auto& tile) { return tile.config.smem_bytes() <= 227 * 1024; });
}
static_assert(all_fit(kSplitTiles));

}  // namespace rooflash::hopper
