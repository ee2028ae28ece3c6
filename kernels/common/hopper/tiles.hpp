// Which of a family's compiled tiles a problem takes, and why. CUDA-free; the host code of the GPU
// side and the traffic models read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "common/hopper/config.hpp"
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

// What a block may use on sm_90 is 227 KiB.
template <class Tiles>
constexpr bool all_fit(const Tiles& tiles) {
  return std::all_of(std::begin(tiles), std::end(tiles),
                     [](const auto& tile) { return tile.config.smem_bytes() <= 227 * 1024; });
}

}  // namespace rooflash::hopper
