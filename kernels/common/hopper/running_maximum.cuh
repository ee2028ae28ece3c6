// FlashAttention-3's softmax: weights against the true running maximum, which moves where a score
// has outgrown it by more than kLagLog2.
#pragma once

#include "common/hopper/softmax.cuh"

namespace rooflash::hopper {

struct RunningMaximum : RowSoftmax {
  static constexpr bool kKeepsKeys = false;

  template <int kKeys, class Again>
  __device__ __forceinline__ void fast(Accumulators<1, kKeys>& s, float scale_log2, const Again&) {
    follow(s, scale_log2);
    exponentiate(s, scale_log2, {shift(0), shift(1)}, rows.sum[0]);
  }

  // Moves the maxima that a block's scores have outgrown. A thread's own scores tell whether one
  // has; only then do a row's lanes agree on the maximum.
  template <int kKeys>
  __device__ __forceinline__ void follow(const Accumulators<1, kKeys>& s, float scale_log2) {
    float own[2] = {s.at[0][0][0], s.at[0][0][2]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) own[i / 2] = fmaxf(own[i / 2], s.at[0][n][i]);
    }
    moved = false;
    const bool outgrown = own[0] * scale_log2 > rows.max[0][0] + kLagLog2 ||
                          own[1] * scale_log2 > rows.max[0][1] + kLagLog2;
    if (__any_sync(0xFFFFFFFFU, outgrown)) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        own[r] = fmaxf(own[r], __shfl_xor_sync(0xFFFFFFFFU, own[r], 1));
        own[r] = fmaxf(own[r], __shfl_xor_sync(0xFFFFFFFFU, own[r], 2)) * scale_log2;
      }
      move_to(own);
    }
  }
};

}  // namespace rooflash::hopper
