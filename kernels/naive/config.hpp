// How the softmax kernel lays its threads over a row of scores.
#pragma once

#include <cstdint>

namespace rooflash::naive {

inline constexpr int kSoftmaxKept = 16384;     // scores of a row that are kept in shared memory
inline constexpr int kSoftmaxResident = 1024;  // threads of an SM

// Threads for a row of `keys` scores: 32 keys each at most, up to sixteen warps.
constexpr int softmax_threads(std::int64_t keys) {
  for (const int threads : {32, 128, 256}) {
    if (keys <= std::int64_t{threads} * 32) return threads;
  }
  return 512;
}

// Scores of the row that are kept at once, a multiple of every pack.
constexpr int softmax_kept(std::int64_t keys) {
  return keys < kSoftmaxKept ? static_cast<int>((keys + 15) / 16 * 16) : kSoftmaxKept;
}

}  // namespace rooflash::naive
