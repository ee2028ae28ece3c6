// The softmax of a warp's 16 rows, as far as the Hopper families have it in common.
#pragma once

#include <cmath>

#include "common/hopper/config.hpp"
#include "common/online_softmax.cuh"

namespace rooflash::hopper {

// The two rows of a thread: weights are taken against rows.max, in units of log2.
struct RowSoftmax {
  RowState<1> rows;
  bool moved = false;  // the same in all lanes of the warp
  float factor[2];

  __device__ __forceinline__ RowSoftmax() { rows.clear(); }

  // What is subtracted from a row's scores. One with no key yet keeps -inf; 0 in its place avoids
  // inf - inf.
  __device__ __forceinline__ float shift(int r) const {
    return rows.max[0][r] == -INFINITY ? 0.0F : rows.max[0][r];
  }

  // Moves the maxima to those that the rows' lanes agree on, where they have grown by more than
  // kLagLog2.
  __device__ __forceinline__ void move_to(const float (&maxima)[2]) {
    bool any = false;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float old = rows.max[0][r];
      factor[r] = 1.0F;
      if (maxima[r] > old + kLagLog2) {  // also the first score of a row, after -inf
        rows.max[0][r] = maxima[r];
        factor[r] = ptx::ex2(old - maxima[r]);
        any = true;
      }
    }
    moved = __any_sync(0xFFFFFFFFU, any);
    if (moved) {
      rows.sum[0][0] *= factor[0];
      rows.sum[0][1] *= factor[1];
    }
  }

  // Weights after the true maximum.
  template <int kKeys>
  __device__ __forceinline__ void exact(Accumulators<1, kKeys>& s, float scale_log2) {
    float maxima[1][2];
    row_maxima(maxima, s);
    maxima[0][0] *= scale_log2;
    maxima[0][1] *= scale_log2;
    move_to(maxima[0]);
    exponentiate(s, scale_log2, {shift(0), shift(1)}, rows.sum[0]);
  }

  // Scores to 2^(score - shift), which are added to `sums`.
  template <int kKeys>
  __device__ __forceinline__ static void exponentiate(Accumulators<1, kKeys>& s, float scale_log2,
                                                      const float (&shifts)[2], float (&sums)[2]) {
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s.at[0][n][i] = ptx::ex2(s.at[0][n][i] * scale_log2 - shifts[i / 2]);
        sums[i / 2] += s.at[0][n][i];
      }
    }
  }
};

}  // namespace rooflash::hopper
