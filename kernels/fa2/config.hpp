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
  int stages;       // of K and V: with two, both are loaded a whole step ahead
  int ctas_per_sm;  // that the registers allow

  constexpr int threads() const { return 32 * warps; }
  constexpr int rows_per_warp() const { return block_m / warps; }
  // Q and the tiles of K and V, 2 bytes an element.
  constexpr int smem_bytes() const { return (block_m + 2 * stages * block_n) * headdim * 2; }
};

inline constexpr Config kConfigs[] = {
    {64, 128, 64, 4, 2, 2}, {96, 128, 64, 4, 2, 2}, {128, 128, 32, 4, 2, 2},
    {192, 64, 64, 4, 1, 2}, {256, 64, 64, 4, 1, 2},
};

// A row's weights are taken against a maximum that may lag behind by this much, in units of log2,
// so that O is hardly ever rescaled. fp16 holds weights up to 2^15.
inline constexpr float kLagLog2 = 8;

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
