// How the softmax kernel lays its threads over a row of scores.
#pragma once

#include <cstdint>

namespace rooflash::naive {

inline constexpr int kSoftmaxKeysPerThread = 16;  // of a row, in registers

// Threads for a row of `keys` scores, one block. The most hold 16,384 scores; of a longer row they
// take one part after the other.
constexpr int softmax_threads(std::int64_t keys) {
  for (const int threads : {64, 256}) {
    if (keys <= std::int64_t{threads} * kSoftmaxKeysPerThread) return threads;
  }
  return 1024;
}

}  // namespace rooflash::naive
