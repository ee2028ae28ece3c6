// Tiles and shared memory of fa1. As in the paper's algorithm 1, the K and V blocks are as large as
// the shared memory allows; that sets how often O is swept. CUDA-free: the traffic model reads it.
#pragma once

#include <cstdint>

namespace rooflash::fa1 {

// The least and the most shared memory that one block gets on a GPU since sm_80.
inline constexpr std::int64_t kSmallSmemBytes = 99 << 10;
inline constexpr std::int64_t kLargeSmemBytes = 227 << 10;

inline constexpr int kBlockM = 32;  // queries of a step
inline constexpr int kSlices = 4;   // of the keys of a block, and of O's columns: one a warp

// `kLarge`: for GPUs that give a block 227 KiB.
template <int kHeaddim, bool kLarge>
struct Config {
  static_assert(kHeaddim == 64 || kHeaddim == 128 || kHeaddim == 256);
  // Keys of a block; at head dim 64 the registers of a warp hold no larger slice.
  static constexpr int kBlockN = kHeaddim == 64 ? 256 : (kLarge ? 32768 : 16384) / kHeaddim;
  static constexpr int kSliceKeys = kBlockN / kSlices;
  static constexpr int kOwnColumns = kHeaddim / kSlices;
  // Groups of kSlices warps: each takes query blocks of its own over the same K and V. Two at head
  // dim 256, where a warp's part of O, old and new, takes 128 registers.
  static constexpr int kGroups = !kLarge ? 1 : kHeaddim == 256 ? 2 : 4;
  // Tiles of Q of a group. With two its warps wait for each other half as often; at head dim 128
  // they do not fit, at 256 not into 99 KiB.
  static constexpr int kQueryStages = kHeaddim == 64 ? 2 : 1;
  static constexpr int kGroupThreads = 32 * kSlices;
  static constexpr int kThreads = kGroups * kGroupThreads;
  static constexpr int kLoaders = kLarge ? 256 : 128;  // threads that load K and V

  static constexpr int kKeyBytes = kBlockN * kHeaddim * 2;  // K, and V as much
  static constexpr int kQueryBytes = kBlockM * kHeaddim * 2;
  static constexpr int kWeightBytes = kBlockM * kBlockN * 2;  // P, which the warps exchange
  // Of each row: l and m so far, and a maximum or a sum of each slice; with two stages, both.
  static constexpr int kRowBytes = kBlockM * (2 + kSlices) * 4;
  static constexpr int kGroupBytes = kQueryStages * (kQueryBytes + kRowBytes) + kWeightBytes;
  static constexpr int kSmemBytes = 2 * kKeyBytes + kGroups * kGroupBytes;
  static_assert(kSmemBytes <= (kLarge ? kLargeSmemBytes : kSmallSmemBytes));
};

}  // namespace rooflash::fa1
