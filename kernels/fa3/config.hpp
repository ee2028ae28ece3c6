// Tiles of fa3. CUDA-free: the traffic model reads them.
#pragma once

#include "common/hopper/tiles.hpp"

namespace rooflash::fa3 {

// Head dim, warpgroups of 64 queries, keys a step, steps a stage, stages, ping-pong, early release.
inline constexpr hopper::CompiledTile kTiles[] = {
    {{64, 4, 64, 2, 4, false, false}, hopper::any, "the registers hold 4 warpgroups"},
    {{96, 3, 64, 1, 4, false, false}, hopper::any, "the registers hold 3 warpgroups"},
    {{128, 2, 128, 1, 2, true, false},
     hopper::unmasked,
     "no mask: long steps, so that fewer maxima are taken"},
    {{128, 3, 64, 2, 2, false, false},
     hopper::any,
     "masked: short steps, so that less of a step is hidden"},
    {{192, 2, 96, 1, 2, true, true}, hopper::any, "shared memory holds no second tile of Q"},
    {{256, 2, 64, 1, 2, true, true}, hopper::any, "shared memory holds no second tile of Q"},
};
static_assert(hopper::all_fit(kTiles));

constexpr const hopper::CompiledTile& choose(const Problem& p) {
  return kTiles[hopper::choose(kTiles, p)];
}

}  // namespace rooflash::fa3
