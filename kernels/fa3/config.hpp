// Tiles of fa3. CUDA-free: the traffic model reads them.
#pragma once

#include "common/hopper/tiles.hpp"

namespace rooflash::fa3 {

// Head dim, warpgroups of 64 queries, keys a step, steps a stage, stages, early release, Q in
// registers, split, pairs of CTAs.
inline constexpr hopper::CompiledTile kTiles[] = {
    {{64, 4, 64, 2, 4, false}, hopper::any, "the registers hold 4 warpgroups"},
    {{96, 3, 64, 1, 4, false}, hopper::any, "the registers hold 3 warpgroups"},
    {{128, 3, 64, 1, 4, false}, hopper::any, "the registers hold 3 warpgroups"},
    {{192, 2, 64, 1, 2, false}, hopper::any, "the registers hold 2 warpgroups"},
    {{256, 2, 64, 1, 2, true, false, false, true}, hopper::pairs_pay, hopper::kWhyPair},
    {{256, 2, 64, 1, 2, true}, hopper::any, "shared memory holds no second tile of Q"},
};
static_assert(hopper::all_fit(kTiles));

inline const hopper::CompiledTile& choose(const Problem& p) {
  return hopper::choose_with_split(kTiles, p);
}

}  // namespace rooflash::fa3
