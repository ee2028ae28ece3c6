// Tiles and shared memory of sdpa, derived from head dim and element size. CUDA-free: the traffic
// model reads it.
#pragma once

#include <cstdint>

namespace rooflash::sdpa {

inline constexpr int kThreads = 128;
inline constexpr std::int64_t kLeastSmemBytes = 99 << 10;  // of a block, on a GPU since sm_80

// 16-bit elements, on tensor cores: 2 x 2 warps.
template <int kHeaddim>
struct MmaConfig {
  static_assert(kHeaddim == 64 || kHeaddim == 128 || kHeaddim == 256);
  static constexpr int kBlockM = 64;                         // queries of a CTA
  static constexpr int kBlockN = kHeaddim == 256 ? 32 : 64;  // keys of a step
  static constexpr int kQueryBytes = kBlockM * kHeaddim * 2;
  static constexpr int kKeyBytes = kBlockN * kHeaddim * 2;  // K, and V as much
  static constexpr int kWeightBytes = kBlockM * kBlockN * 2;
  static constexpr int kStatisticsBytes = kBlockM * 2 * 4;  // of each row, two halves of the keys
  static constexpr int kSmemBytes = kQueryBytes + 2 * kKeyBytes + kWeightBytes + kStatisticsBytes;
  static_assert(kSmemBytes <= kLeastSmemBytes);
};

// fp32, on the FMA units: 16 x 8 threads.
template <int kHeaddim>
struct FmaConfig {
  static_assert(kHeaddim == 64 || kHeaddim == 128 || kHeaddim == 256);
  static constexpr int kBlockM = kHeaddim == 256 ? 32 : 64;
  static constexpr int kBlockN = kHeaddim == 256 ? 16 : 32;
  static constexpr int kBlocksPerSm = 2;
  // Rows are four elements longer, so that neighbouring ones begin in different banks.
  static constexpr int kStride = kHeaddim + 4;
  static constexpr int kWeightStride = kBlockN + 4;
  static constexpr int kSmemBytes =
      ((kBlockM + 2 * kBlockN) * kStride + kBlockM * kWeightStride) * 4;
  static_assert(kSmemBytes <= kLeastSmemBytes);
};

}  // namespace rooflash::sdpa
