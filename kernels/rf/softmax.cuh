// The lazily referenced softmax: no maximum is looked for in the blocks that need no mask, beyond a
// row's first.
#pragma once

#include "common/hopper/softmax.cuh"

namespace rooflash::rf {

// O and the row sums are exact against any reference, as long as no weight overflows or is lost:
// the division takes the reference out. So a row keeps the one of its first block, rounded up to a
// whole number, and weights are 2^(score - reference) / kScale, far below 1: they may grow by a
// factor of 2^kRoomLog2 before it matters. A block in which they do is done again from its scores,
// exactly.
template <class T>
struct Room;
// bf16 has the exponents of fp32: the middle of them. Weights 2^-66 of the largest are lost.
template <>
struct Room<__nv_bfloat16> {
  static constexpr float kBiasLog2 = 60;
  static constexpr float kLargest = 0x1p60F;
};
// fp16 holds weights up to 2^16, and has no room for a bias.
template <>
struct Room<__half> {
  static constexpr float kBiasLog2 = 0;
  static constexpr float kLargest = 0x1p15F;
};

template <class T>
struct Softmax : hopper::RowSoftmax {
  static constexpr float kBias = Room<T>::kBiasLog2;
  static constexpr float kScale = kBias == 60 ? 0x1p60F : 1.0F;
  static constexpr bool kKeepsKeys = true;
  template <int kKeys>
  __device__ __forceinline__ void exact(Accumulators<1, kKeys>& s, float scale_log2) {
    float maxima[1][2];
    row_maxima(maxima, s);
    maxima[0][0] = ceilf(maxima[0][0] * scale_log2);
    maxima[0][1] = ceilf(maxima[0][1] * scale_log2);
    move_to(maxima[0]);
    const float shift[2] = {rows.max[0][0] == -INFINITY ? 0.0F : rows.max[0][0] + kBias,
                            rows.max[0][1] == -INFINITY ? 0.0F : rows.max[0][1] + kBias};
    hopper::exponentiate(s, scale_log2, shift, rows.sum[0]);
  }

  template <int kKeys, class Again>
  __device__ __forceinline__ void fast(Accumulators<1, kKeys>& s, float scale_log2,
                                       const Again& again) {
    const float shift[2] = {rows.max[0][0] + kBias, rows.max[0][1] + kBias};
    float sums[2] = {0, 0};
    hopper::exponentiate(s, scale_log2, shift, sums);
    moved = false;
    // Not above it: NaN as well.
    const bool within = sums[0] <= Room<T>::kLargest && sums[1] <= Room<T>::kLargest;
    if (__all_sync(0xFFFFFFFFU, within)) {
      rows.sum[0][0] += sums[0];
      rows.sum[0][1] += sums[1];
    } else {
      again();
      exact(s, scale_log2);
    }
  }
};

}  // namespace rooflash::rf
