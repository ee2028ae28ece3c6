// The softmax of a warp's 16 rows, with weights for e4m3.
#pragma once

#include <cmath>

#include "common/online_softmax.cuh"

namespace rooflash::fp8 {

// A row's largest weight is 2^kPlaceLog2 when the maximum moves, and may outgrow it by kLagLog2
// before it moves again: e4m3 ends at 448, above 2^8.8. Weights are as exact at any place.
inline constexpr float kPlaceLog2 = 4;
inline constexpr float kLagLog2 = 4.75F;

// The two rows of a thread. A block of V that is stored times 2^-v_log2 takes its weights times
// 2^v_log2, which e4m3 holds as well; the sums are those of the true weights.
struct Softmax {
  RowState<1> rows;
  bool moved = false;  // the same in all lanes of the warp
  float factor[2];     // then: of what was summed before

  __device__ __forceinline__ Softmax() { rows.clear(); }

  // What is subtracted from a row's scores. One with no key yet keeps -inf; 0 in its place avoids
  // inf - inf.
  __device__ __forceinline__ float shift(int r) const {
    return rows.max[0][r] == -INFINITY ? 0.0F : rows.max[0][r] - kPlaceLog2;
  }
  // LSE in units of log2, of a row's sum over its lanes; -inf without keys.
  __device__ __forceinline__ float lse_log2(int r, float sum) const {
    return rows.max[0][r] - kPlaceLog2 + __log2f(sum);
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
    const bool outgrown = own[0] * scale_log2 > rows.max[0][0] + kLagLog2 ||
                          own[1] * scale_log2 > rows.max[0][1] + kLagLog2;
    moved = __any_sync(0xFFFFFFFFU, outgrown);
    if (!moved) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      own[r] = fmaxf(own[r], __shfl_xor_sync(0xFFFFFFFFU, own[r], 1));
      own[r] = fmaxf(own[r], __shfl_xor_sync(0xFFFFFFFFU, own[r], 2)) * scale_log2;
      const float old = rows.max[0][r];
      factor[r] = 1.0F;
      if (own[r] > old + kLagLog2) {  // also the first score of a row, after -inf
        rows.max[0][r] = own[r];
        factor[r] = ptx::ex2(old - own[r]);
      }
      rows.sum[0][r] *= factor[r];
    }
  }

  // Weights of a block's scores in their place.
  template <int kKeys>
  __device__ __forceinline__ void weigh(Accumulators<1, kKeys>& s, float scale_log2, float v_log2) {
    follow(s, scale_log2);
    const float shifts[2] = {shift(0) - v_log2, shift(1) - v_log2};
    float sums[2] = {0, 0};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s.at[0][n][i] = ptx::ex2(s.at[0][n][i] * scale_log2 - shifts[i / 2]);
        sums[i / 2] += s.at[0][n][i];
      }
    }
    // 2^-v_log2, exactly.
    const float undo = __int_as_float((127 - static_cast<int>(v_log2)) << 23);
    rows.sum[0][0] += sums[0] * undo;
    rows.sum[0][1] += sums[1] * undo;
  }
};

}  // namespace rooflash::fp8
