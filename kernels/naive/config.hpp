// How the softmax kernel lays its threads over a row of scores.
#pragma once

#include <cstdint>

namespace rooflash::naive {

inline constexpr int kSoftmaxResident = 768;       // threads of an SM, by registers
inline constexpr int kSoftmaxBytesPerThread = 64;  // of scores, in registers
// Of a row of scores, in shared memory: what the most threads take at once.
inline constexpr int kSoftmaxKeptBytes = 512 * kSoftmaxBytesPerThread;

// Rows of scores start at multiples of this: 16-byte packs can be moved whatever the length.
inline constexpr std::int64_t kRowBytes = 128;

// Elements from one row of `keys` scores to the next.
constexpr std::int64_t score_stride(std::int64_t keys, std::int64_t element_bytes) {
  return (keys * element_bytes + kRowBytes - 1) / kRowBytes * kRowBytes / element_bytes;
}

// Threads for a row of `keys` scores: up to sixteen warps.
constexpr int softmax_threads(std::int64_t keys, std::int64_t element_bytes) {
  for (const int threads : {32, 64, 128, 256}) {
    if (keys * element_bytes <= std::int64_t{threads} * kSoftmaxBytesPerThread) return threads;
  }
  return 512;
}

// Threads of a block. Rows of a warp share one, since blocks of a warp would leave an SM half
// empty.
constexpr int softmax_block_threads(int row_threads) {
  return row_threads == 32 ? 128 : row_threads;
}

// Scores of the row that are kept at once, a multiple of every pack.
constexpr int softmax_kept(std::int64_t keys, std::int64_t element_bytes) {
  const std::int64_t most = kSoftmaxKeptBytes / element_bytes;
  return static_cast<int>(keys < most ? (keys + 15) / 16 * 16 : most);
}

}  // namespace rooflash::naive
