// rf's host algorithm with a count of what happened, for tests: `Kernel::host` drops it.
#pragma once

#include "common/hopper/host_forward.hpp"

namespace rooflash::rf {

hopper::ForwardCounts forward(const Problem& p, const HostTensors& t, Tile tile,
                              TwoLevelMemory& memory);

}  // namespace rooflash::rf
