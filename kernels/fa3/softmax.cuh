// FlashAttention-3's softmax: weights against the true running maximum, which moves where a score
// has outgrown it by more than kLagLog2.
#pragma once

#include "common/hopper/softmax.cuh"

namespace rooflash::fa3 {

// O is hardly ever rescaled, and the result is the same: O and the sums hold the same maximum, and
// the division takes it out. Weights reach 2^8, which fp16 holds.
inline constexpr float kLagLog2 = 8;

#ifndef FA3_MODE
#define FA3_MODE 2
#endif
template <int kMode, bool kPin = false>
struct Softmax : hopper::RowSoftmax {
  static constexpr float kScale = 1;
  static constexpr bool kKeepsKeys = false;

  template <int kKeys>
  __device__ __forceinline__ void exact(Accumulators<1, kKeys>& s, float scale_log2) {
    float maxima[1][2];
    row_maxima(maxima, s);
    maxima[0][0] *= scale_log2;
    maxima[0][1] *= scale_log2;
    move_to(maxima[0], kMode == 0 ? 0.0F : kLagLog2);
    // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
    const float shift[2] = {rows.max[0][0] == -INFINITY ? 0.0F : rows.max[0][0],
                            rows.max[0][1] == -INFINITY ? 0.0F : rows.max[0][1]};
    hopper::exponentiate(s, scale_log2, shift, rows.sum[0]);
  }

  // The maximum of a thread's own scores is enough to see that none has outgrown.
  template <int kKeys, class Again>
  __device__ __forceinline__ void fast(Accumulators<1, kKeys>& s, float scale_log2, const Again&) {
    weigh(s, scale_log2);
    if constexpr (kPin) {
      if (rows.sum[0][0] + rows.sum[0][1] > 1e30f) __trap();
    }
  }
  template <int kKeys>
  __device__ __forceinline__ void weigh(Accumulators<1, kKeys>& s, float scale_log2) {
    if constexpr (kMode == 0 || kMode == 1) {
      exact(s, scale_log2);
    } else if constexpr (kMode == 3) {
      float own[2] = {s.at[0][0][0], s.at[0][0][2]};
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) own[i / 2] = fmaxf(own[i / 2], s.at[0][n][i]);
      }
      const bool grown = own[0] * scale_log2 > rows.max[0][0] + kLagLog2 ||
                         own[1] * scale_log2 > rows.max[0][1] + kLagLog2;
      moved = false;
      if (__any_sync(0xFFFFFFFFU, grown)) {
        float maxima[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float max = own[r];
          max = fmaxf(max, __shfl_xor_sync(0xFFFFFFFFU, max, 1));
          maxima[r] = fmaxf(max, __shfl_xor_sync(0xFFFFFFFFU, max, 2)) * scale_log2;
        }
        move_to(maxima, kLagLog2);
      }
      hopper::exponentiate(s, scale_log2, rows.max[0], rows.sum[0]);
    } else {
      // Floats above 0 are ordered as the integers of their bits are, and negative ones are
      // negative integers: the largest integer tells whether a score has outgrown. Three at a time.
      int largest[4] = {0, 0, 0, 0};
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          s.at[0][n][i] = s.at[0][n][i] * scale_log2 - rows.max[0][i / 2];
        }
        largest[n % 2 * 2] = __vimax3_s32(largest[n % 2 * 2], __float_as_int(s.at[0][n][0]),
                                          __float_as_int(s.at[0][n][1]));
        largest[n % 2 * 2 + 1] = __vimax3_s32(largest[n % 2 * 2 + 1], __float_as_int(s.at[0][n][2]),
                                              __float_as_int(s.at[0][n][3]));
      }
      const int most = max(__vimax3_s32(largest[0], largest[1], largest[2]), largest[3]);
      moved = false;
      if (__any_sync(0xFFFFFFFFU, most > __float_as_int(kLagLog2))) outgrown(s);
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          s.at[0][n][i] = ptx::ex2(s.at[0][n][i]);
          rows.sum[0][i / 2] += s.at[0][n][i];
        }
      }
    }
  }

  // `s` holds scores less the maximum that a score has outgrown.
  template <int kKeys>
  __device__ __forceinline__ void outgrown(Accumulators<1, kKeys>& s) {
    float growth[1][2];
    row_maxima(growth, s);
    const float old[2] = {rows.max[0][0], rows.max[0][1]};
    const float maxima[2] = {old[0] + growth[0][0], old[1] + growth[0][1]};
    move_to(maxima, kLagLog2);
    const float less[2] = {rows.max[0][0] - old[0], rows.max[0][1] - old[1]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s.at[0][n][i] -= less[i / 2];
    }
  }
};

}  // namespace rooflash::fa3
