// Tiles and shared memory of fa2, derived from head dim alone. CUDA-free: the traffic model reads
// it.
#pragma once

#include <cstdint>
#include <iterator>

namespace rooflash::fa2 {

struct Config {
  int headdim;      // rows are padded to it in shared memory
  int block_m;      // queries per CTA
  int block_n;      // keys per step; what the registers hold
  int warps;        // each owns block_m / warps query rows
  int ctas_per_sm;  // that the registers allow

  constexpr int threads() const { return 32 * warps; }
  constexpr int rows_per_warp() const { return block_m / warps; }
  // Q, one K tile and one V tile, 2 bytes an element.
  constexpr int smem_bytes() const { return (block_m + 2 * block_n) * headdim * 2; }
};

inline constexpr Config kConfigs[] = {
    {64, 128, 64, 4, 2}, {96, 128, 32, 4, 2}, {128, 128, 32, 4, 2},
    {192, 64, 64, 4, 2}, {256, 64, 64, 4, 2},
};

// The one that serves a head dim: the smallest that holds it.
constexpr Config config_of(std::int64_t headdim) {
  for (const Config& config : kConfigs) {
    if (headdim <= config.headdim) return config;
  }
  return kConfigs[std::size(kConfigs) - 1];
}

// A block may use 163 KiB on sm_80 and 227 KiB on sm_90, but only 99 KiB on sm_86, 89 and 120.
constexpr bool fits_everywhere() {
  for (const Config& config : kConfigs) {
    if (config.smem_bytes() > 99 * 1024) return false;
  }
  return true;
}
static_assert(fits_everywhere());

}  // namespace rooflash::fa2
