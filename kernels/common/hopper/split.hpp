// The kernels for short queries, those of kSplitTiles in tiles.hpp: fa3 and rf have them in common.
#pragma once

#include "kernel.hpp"

namespace rooflash::hopper {

// The launch of the one for the problem's head dim, and of the one that combines its parts, which
// lie in t.workspace: workspace_bytes(p, config) bytes. Throws as hopper::prepare does.
Prepared prepare_split(const Problem& p, const Tensors& t, const DeviceLimits& device);

}  // namespace rooflash::hopper
