// How the softmax kernel lays its threads over a row of scores.
#pragma once

#include <cstdint>

namespace rooflash::naive {

inline constexpr int kSoftmaxKeptBytes = 32768;  // of a row of scores, in shared memory
inline constexpr int kSoftmaxResident = 1024;    // threads of an SM

// Rows of scores start at multiples of this: 16-byte packs can be moved whatever the length.
inline constexpr std::int64_t kRowBytes = 128;

// Elements from one row of `keys` scores to the next.
constexpr std::int64_t score_stride(std::int64_t keys, std::int64_t element_bytes) {
  return (keys * element_bytes + kRowBytes - 1) / kRowBytes * kRowBytes / element_bytes;
}

// Threads for a row of `keys` scores: 32 keys each at most, up to sixteen warps.
constexpr int softmax_threads(std::int64_t keys) {
  for (const int threads : {32, 128, 256}) {
    if (keys <= std::int64_t{threads} * 32) return threads;
  }
  return 512;
}

// Scores of the row that are kept at once, a multiple of every pack.
constexpr int softmax_kept(std::int64_t keys, std::int64_t element_bytes) {
  const std::int64_t most = kSoftmaxKeptBytes / element_bytes;
  return static_cast<int>(keys < most ? (keys + 15) / 16 * 16 : most);
}

}  // namespace rooflash::naive
