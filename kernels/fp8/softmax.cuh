// The softmax of a warp's 16 rows, with weights for e4m3.
#pragma once

#include <cmath>

#include "common/online_softmax.cuh"
#include "fp8/arguments.cuh"

namespace rooflash::fp8 {

// Weights are as exact at any place. e4m3 ends at 448, above 2^8.8.
inline constexpr float kLargest = 448;

__device__ __forceinline__ float power_of_two(int exponent) {
  return __int_as_float((127 + exponent) << 23);
}

// A block of V that is stored times 2^-log2.
struct ScaleOfV {
  float log2;
  float undo;  // 2^-log2

  ScaleOfV() = default;
  __device__ __forceinline__ explicit ScaleOfV(float log2)
      : log2(log2), undo(power_of_two(-static_cast<int>(log2))) {}
};

// Weights against the true running maximum. A row's largest weight is 2^kPlace when its maximum
// moves, and may outgrow that by 2^lag before it moves again, with a lag of at most kLagLog2.
//
// The two rows of a thread. A block of V that is stored times 2^-log2 takes its weights times
// 2^log2, and the maxima are those of the scores with it: so a row that sees such blocks alone
// has weights of full size. The sums are those of the true weights.
template <int kPlace = 4>
struct RunningMaximum {
  static constexpr bool kLazy = false;  // weigh_whole may ask for the scores again
  static_assert(kPlace + kLagLog2 < 8.8F);

  RowState<1> rows;
  bool moved = false;  // the same in all lanes of the warp
  float factor[2];     // then: of what was summed before

  __device__ __forceinline__ explicit RunningMaximum(const Arguments& /*args*/) { rows.clear(); }

  // What is subtracted from a row's scores.
  __device__ __forceinline__ float shift(int r, const ScaleOfV& v) const {
    return rows.max[0][r] - (static_cast<float>(kPlace) + v.log2);
  }
  // Where a row may have no key yet, whose maximum is -inf: 0 in its place avoids inf - inf.
  __device__ __forceinline__ float finite_shift(int r, const ScaleOfV& v) const {
    return rows.max[0][r] == -INFINITY ? 0.0F : shift(r, v);
  }
  // LSE in units of log2, of a row's sum over its lanes; -inf without keys.
  __device__ __forceinline__ float lse_log2(int r, float sum) const {
    return rows.max[0][r] - static_cast<float>(kPlace) + __log2f(sum);
  }

  // Moves the maxima that a block's scores have outgrown. A thread's own scores tell whether one
  // has; only then do a row's lanes agree on the maximum.
  template <int kKeys>
  __device__ __forceinline__ void follow(const Accumulators<1, kKeys>& s, float scale_log2,
                                         const ScaleOfV& v, float lag) {
    float own[2] = {s.at[0][0][0], s.at[0][0][2]};
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) own[i / 2] = fmaxf(own[i / 2], s.at[0][n][i]);
    }
    const bool outgrown = own[0] * scale_log2 + v.log2 > rows.max[0][0] + lag ||
                          own[1] * scale_log2 + v.log2 > rows.max[0][1] + lag;
    moved = __any_sync(0xFFFFFFFFU, outgrown);
    if (!moved) return;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      own[r] = fmaxf(own[r], __shfl_xor_sync(0xFFFFFFFFU, own[r], 1));
      own[r] = fmaxf(own[r], __shfl_xor_sync(0xFFFFFFFFU, own[r], 2)) * scale_log2 + v.log2;
      const float old = rows.max[0][r];
      factor[r] = 1.0F;
      if (own[r] > old + lag) {  // also the first score of a row, after -inf
        rows.max[0][r] = own[r];
        factor[r] = ptx::ex2(old - own[r]);
      }
      rows.sum[0][r] *= factor[r];
    }
  }

  // Weights of a block's scores in their place.
  template <int kKeys>
  __device__ __forceinline__ void weigh(Accumulators<1, kKeys>& s, float scale_log2,
                                        const ScaleOfV& v, float lag) {
    follow(s, scale_log2, v, lag);
    float sums[2];
    exponentiate(s, scale_log2, {finite_shift(0, v), finite_shift(1, v)}, sums);
    add(sums, v);
  }
  // Of a block that all rows see, after one that all rows saw.
  template <int kKeys, class Again>
  __device__ __forceinline__ void weigh_whole(Accumulators<1, kKeys>& s, float scale_log2,
                                              const ScaleOfV& v, float lag, const Again&) {
    weigh(s, scale_log2, v, lag);
  }

  // Scores to 2^(score - shift), and their sums.
  template <int kKeys>
  __device__ __forceinline__ static void exponentiate(Accumulators<1, kKeys>& s, float scale_log2,
                                                      const float (&shifts)[2], float (&sums)[2]) {
    sums[0] = sums[1] = 0;
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        s.at[0][n][i] = ptx::ex2(s.at[0][n][i] * scale_log2 - shifts[i / 2]);
        sums[i / 2] += s.at[0][n][i];
      }
    }
  }
  __device__ __forceinline__ void add(const float (&sums)[2], const ScaleOfV& v) {
    rows.sum[0][0] += sums[0] * v.undo;
    rows.sum[0][1] += sums[1] * v.undo;
  }
};

// Weights against a reference that only masked blocks and the first whole one look for, the maximum
// so far. O and the row sums are exact against any reference; where a later block's weights outgrow
// e4m3, which a thread's sums tell, they and all that was summed before go down by a power of two.
// Those that outgrow even fp32 are made again from the scores, and the warp keeps to the true
// maximum for the rest of the tile, so that this happens once. With no lag it does from the first
// block on.
//
// Two conditions keep a row from calling again at every block: that a row which calls comes down to
// its place, and that weights up to twice 2^kPlace do not call, 24 of them a thread.
struct LazyReference : RunningMaximum<3> {
  static constexpr bool kLazy = true;
  bool wary;  // the same in all lanes of the warp

  __device__ __forceinline__ explicit LazyReference(const Arguments& args)
      : RunningMaximum(args), wary(args.lag == 0.0F) {}

  template <int kKeys, class Again>
  __device__ __forceinline__ void weigh_whole(Accumulators<1, kKeys>& s, float scale_log2,
                                              const ScaleOfV& v, float lag, const Again& again) {
    static_assert(kKeys / 4 * 16 <= kLargest);
    const bool was_wary = wary;
    moved = false;
    if (wary) follow(s, scale_log2, v, lag);
    float sums[2];
    exponentiate(s, scale_log2, {shift(0, v), shift(1, v)}, sums);
    // Not above it: NaN as well.
    const bool within = sums[0] <= kLargest && sums[1] <= kLargest;
    if (!was_wary && !__all_sync(0xFFFFFFFFU, within)) {
      bring_down(s, sums);
      if (wary) {
        again();
        follow(s, scale_log2, v, lag);
        exponentiate(s, scale_log2, {shift(0, v), shift(1, v)}, sums);
      }
    }
    add(sums, v);
  }

 private:
  // Weights to their place, by a factor that `factor` holds for what was summed before. Becomes
  // wary instead where one is infinite or NaN.
  template <int kKeys>
  __device__ __forceinline__ void bring_down(Accumulators<1, kKeys>& s, float (&sums)[2]) {
    float most[1][2];
    row_maxima(most, s);
    wary = __any_sync(0xFFFFFFFFU, !(sums[0] < INFINITY && sums[1] < INFINITY));
    if (wary) return;
    moved = true;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // The weight's exponent above its place, if it has left it.
      const int above = (__float_as_int(most[0][r]) >> 23) - 127 - 3;
      const int down = max(above, 0);
      factor[r] = power_of_two(-down);
      rows.max[0][r] += static_cast<float>(down);
      rows.sum[0][r] *= factor[r];
      sums[r] *= factor[r];
    }
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) s.at[0][n][i] *= factor[i / 2];
    }
  }
};

}  // namespace rooflash::fp8
