// Tiles and shared memory of fa2, derived from head dim alone. CUDA-free: the traffic model reads
// it.
#pragma once

#include <cstdint>

namespace rooflash::fa2 {

template <int kHeaddim>
struct Config {
  static_assert(kHeaddim == 64 || kHeaddim == 128);
  static constexpr int kBlockM = 128;  // queries per CTA
  static constexpr int kBlockN =
      kHeaddim == 128 ? 32 : 64;    // keys per step; what the registers hold
  static constexpr int kWarps = 4;  // each owns kBlockM / kWarps query rows
  static constexpr int kThreads = 32 * kWarps;
  static constexpr int kRowsPerWarp = kBlockM / kWarps;
  // Q, one K tile and one V tile, 2 bytes an element.
  static constexpr int kSmemBytes = (kBlockM + 2 * kBlockN) * kHeaddim * 2;
};

}  // namespace rooflash::fa2
