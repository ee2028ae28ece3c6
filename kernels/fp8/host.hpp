// The fp8 kernel on the CPU: what it sums up where, and rounds where, over a two-level memory, and
// its closed form. CUDA-free.
#pragma once

#include <cstdint>

#include "common/two_level_memory.hpp"
#include "config.hpp"
#include "kernel.hpp"

namespace rooflash::fp8 {

// Forward attention of an e4m3 problem, with the tile's key blocks in place of the config's.
void forward(const Problem& p, const HostTensors& t, Tile tile, const Config& config,
             TwoLevelMemory& memory);
Tile choose_tile(const Problem& p, const Config& config, std::int64_t sram_bytes);
Traffic traffic(const Problem& p, Tile tile, const Config& config);

}  // namespace rooflash::fp8
