// Tiles of the fp8 kernels and what follows from them. CUDA-free.
#pragma once

#include "common/hopper/tiles.hpp"
#include "core/fp8.hpp"

namespace rooflash::fp8 {

// How far a row's largest weight may outgrow its place before its maximum moves, in log2: e4m3 ends
// at 448, above 2^8.8, and places are at most 2^4.
inline constexpr float kLagLog2 = 4.75F;
inline constexpr int kWarpgroupRows = 64;  // queries of a warpgroup
static_assert(kWarpgroupRows == kScaleRowsQ);
inline constexpr int kScaleKeys = static_cast<int>(kScaleRowsKv);

// Tiles of Q, K and V as they are loaded lie in shared memory as columns of this width.
constexpr int row_bytes_of(int headdim) {
  return headdim < 128 ? 64 : 128;
}

struct Config {
  int headdim;    // smaller ones are padded with zeros
  int consumers;  // warpgroups that compute
  int block_n;    // keys per step
  int q_slots;    // tiles of Q, stages of K, of V as it is loaded and of V transposed: 1, 2 or 4
  int k_stages;
  int loaded_stages;
  int v_stages;
  // Blocks after which what the tensor cores have summed goes to sums beside them, the first time
  // after half as many: an even number, or 0 for never. Tensor cores drop what lies more than about
  // 13 bits below a sum, so sums over many keys of a V whose mean is not 0 come out too small.
  int promote_blocks;

  constexpr int block_m() const { return kWarpgroupRows * consumers; }
  constexpr int threads() const { return 128 * (consumers + 1); }
  constexpr int row_bytes() const { return row_bytes_of(headdim); }
  constexpr int columns() const { return headdim / row_bytes(); }
  constexpr int q_bytes() const { return block_m() * headdim; }
  constexpr int kv_bytes() const { return block_n * headdim; }
  // A warp's own: promoted sums, and O on its way out, both in bf16.
  constexpr int own_bytes() const { return 16 * headdim * 2; }
  // The tiles begin at a multiple of 1024 bytes, which the launch cannot ask for; barriers and
  // notes come behind.
  constexpr int smem_bytes() const {
    return 1024 + q_slots * q_bytes() + (k_stages + loaded_stages + v_stages) * kv_bytes() +
           consumers * 4 * own_bytes() + 1024;
  }
  // A thread's registers: the producer hands some of its own to the consumers.
  constexpr int producer_registers() const { return consumers == 2 ? 40 : 32; }
  constexpr int consumer_registers() const {
    return consumers == 2 ? 232 : consumers == 3 ? 160 : 112;
  }
};

inline bool leaves_sums_to_tensor_cores(const Problem& p) {
  return !fp8_modes(p).exact_accumulation;
}

// Whether 96 keys a step leave more of the last step empty than they are faster than 64.
inline bool ends_better_at_64(const Problem& p) {
  const auto keys = [&](std::int64_t step) { return (p.seqlen_kv + step - 1) / step * step; };
  return 16 * (keys(96) - keys(64)) > keys(64);
}
inline bool leaves_sums_and_ends_better_at_64(const Problem& p) {
  return leaves_sums_to_tensor_cores(p) && ends_better_at_64(p);
}

// Head dim, warpgroups, keys a step, slots of Q, stages of K, of V loaded and transposed, blocks
// between promotions.
inline constexpr hopper::BasicCompiledTile<Config> kTiles[] = {
    {{64, 4, 64, 2, 4, 4, 4, 0}, leaves_sums_to_tensor_cores, "the registers hold 4 warpgroups"},
    {{64, 4, 64, 2, 4, 4, 4, 12}, hopper::any, "the registers hold 4 warpgroups"},
    {{128, 3, 64, 2, 4, 4, 4, 0},
     leaves_sums_and_ends_better_at_64,
     "96 a step would leave over a sixteenth empty"},
    {{128, 3, 96, 2, 4, 2, 4, 0}, leaves_sums_to_tensor_cores, "the registers hold 3 warpgroups"},
    {{128, 3, 64, 2, 4, 4, 4, 12},
     ends_better_at_64,
     "96 a step would leave over a sixteenth empty"},
    {{128, 3, 96, 2, 4, 2, 4, 8}, hopper::any, "the registers hold 3 warpgroups"},
    {{256, 2, 96, 1, 2, 1, 2, 0},
     leaves_sums_to_tensor_cores,
     "shared memory holds no second tile of Q"},
    {{256, 2, 96, 1, 2, 1, 2, 8}, hopper::any, "shared memory holds no second tile of Q"},
};
static_assert(hopper::all_fit(kTiles));

inline const Config& choose(const Problem& p) {
  return kTiles[hopper::choose(kTiles, p)].config;
}

}  // namespace rooflash::fp8
