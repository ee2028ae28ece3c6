// Which of a family's compiled tiles a problem takes, and why. CUDA-free; the host code of the GPU
// side and the traffic models read it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "common/hopper/config.hpp"
#include "core/problem.hpp"

namespace rooflash::hopper {

// Tables of these are in the order of head dims. The last of a head dim serves every problem, those
// before it the ones they are made for.
struct CompiledTile {
  Config config;
  bool (*serves)(const Problem&);
  std::string_view why;
};

constexpr bool any(const Problem&) {
  return true;
}

// Index of the tile that `p` takes: the first that serves it, among those of the smallest head dim
// that holds it.
constexpr std::size_t choose(std::span<const CompiledTile> tiles, const Problem& p) {
  const std::int64_t width = std::max(p.headdim, p.headdim_v);
  for (std::size_t i = 0; i < tiles.size(); ++i) {
    if (width <= tiles[i].config.headdim && tiles[i].serves(p)) return i;
  }
  return tiles.size() - 1;
}

// What a block may use on sm_90 is 227 KiB.
constexpr bool all_fit(std::span<const CompiledTile> tiles) {
  return std::all_of(tiles.begin(), tiles.end(), [](const CompiledTile& tile) {
    return tile.config.smem_bytes() <= 227 * 1024;
  });
}

}  // namespace rooflash::hopper
