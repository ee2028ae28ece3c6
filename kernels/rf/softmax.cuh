// The lazily referenced softmax: no maximum is looked for in the blocks that need no mask, beyond a
// tile's first.
#pragma once

#include <type_traits>

#include "common/hopper/running_maximum.cuh"
#include "room.hpp"

namespace rooflash::rf {

// O and the row sums are exact against any reference, as long as no weight overflows: the division
// takes the reference out. So a row keeps the maximum of its first block as its reference, and
// later weights may grow to kLargest. A row that grows beyond, which its sum tells, has its block
// done again from the scores, exactly; no other row is touched. Scores that outgrow once do so
// again: for the rest of the tile the warp is wary and goes fa3's way, and no block is done again.
template <class T>
struct Softmax : hopper::RunningMaximum {
  static constexpr bool kKeepsKeys = true;
  bool wary = false;  // a row of the warp has outgrown in this tile
  static constexpr float kLargest = std::is_same_v<T, __half> ? kLargestFp16 : kLargestBf16;

  template <int kKeys, class Again>
  __device__ __forceinline__ void fast(Accumulators<1, kKeys>& s, float scale_log2,
                                       const Again& again) {
    moved = false;
    const bool followed = wary;
    if (followed) follow(s, scale_log2);
    // A row with no key yet has reference -inf and gets infinite weights: one to do again.
    const float reference[2] = {followed ? shift(0) : rows.max[0][0],
                                followed ? shift(1) : rows.max[0][1]};
    float sums[2] = {0, 0};
    exponentiate(s, scale_log2, reference, sums);
    // Not above it: NaN as well.
    const bool within = sums[0] <= kLargest && sums[1] <= kLargest;
    if (followed || __all_sync(0xFFFFFFFFU, within)) {
      rows.sum[0][0] += sums[0];
      rows.sum[0][1] += sums[1];
    } else {
      replay(s, sums, scale_log2, again);
    }
  }

 private:
  // Not where there was no key before; and what is infinite or NaN says nothing of the scores to
  // come, and stays in its row.
  __device__ __forceinline__ bool outgrown(int r, float max) const {
    return rows.max[0][r] > -INFINITY && fabsf(max) < INFINITY;
  }
  template <int kKeys, class Again>
  __device__ __forceinline__ void replay(Accumulators<1, kKeys>& s, const float (&sums)[2],
                                         float scale_log2, const Again& again) {
    bool overflown[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // A row's four lanes go the same way.
      const bool mine = !(sums[r] <= kLargest);
      const unsigned lanes = __ballot_sync(0xFFFFFFFFU, mine);
      overflown[r] =
          (lanes >> (ptx::fresh(static_cast<int>(threadIdx.x)) % 32 / 4 * 4) & 0xFU) != 0;
    }
    again(overflown);
    float maxima[1][2];
    row_maxima(maxima, s);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      maxima[0][r] = overflown[r] ? maxima[0][r] * scale_log2 : -INFINITY;
      if (!overflown[r]) rows.sum[0][r] += sums[r];
    }
    wary = __any_sync(0xFFFFFFFFU, outgrown(0, maxima[0][0]) || outgrown(1, maxima[0][1]));
    move_to(maxima[0]);
#pragma unroll
    for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (!overflown[i / 2]) continue;
        s.at[0][n][i] = ptx::ex2(s.at[0][n][i] * scale_log2 - shift(i / 2));
        rows.sum[0][i / 2] += s.at[0][n][i];
      }
    }
  }
};

}  // namespace rooflash::rf
