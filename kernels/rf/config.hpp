// Tiles of rf. CUDA-free: the traffic model reads them.
#pragma once

#include "common/hopper/tiles.hpp"

namespace rooflash::rf {

// Head dim, warpgroups of 64 queries, keys a step, steps a stage, stages, early release, Q in
// registers, split, pairs of CTAs.
inline constexpr hopper::CompiledTile kTiles[] = {
    {{64, 4, 64, 2, 4, false}, hopper::any, "the registers hold 4 warpgroups"},
    {{96, 3, 64, 1, 4, false}, hopper::any, "the registers hold 3 warpgroups"},
    {{128, 3, 64, 1, 4, false}, hopper::any, "the registers hold 3 warpgroups"},
    {{192, 2, 64, 1, 2, false},
     hopper::any,
     "fa3's softmax and tile: a lazy reference gains nothing here"},
    {{256, 2, 64, 1, 2, true, false, false, true},
     hopper::pairs_pay,
     "fa3's softmax and tile: two CTAs share K and V"},
    {{256, 2, 64, 1, 2, true},
     hopper::any,
     "fa3's softmax and tile: a lazy reference gains nothing here"},
};
static_assert(hopper::all_fit(kTiles));

inline const hopper::CompiledTile& choose(const Problem& p) {
  return hopper::choose_with_split(kTiles, p);
}

// Whether a tile has the lazily referenced softmax; the others have fa3's.
constexpr bool is_lazy(const hopper::Config& config) {
  return config.headdim <= 128 && !config.split;
}

}  // namespace rooflash::rf
