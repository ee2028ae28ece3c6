// The online softmax on a warp's accumulators: mask, running maximum and sum, rescaling, division.
// Milakov and Gimelshein (arXiv 1805.02867); every row belongs to four neighbouring lanes.
#pragma once

#include <cmath>
#include <numbers>

#include "common/mask.hpp"
#include "common/mma_tile.cuh"

namespace rooflash {

// Running statistics of the lane's rows: row r of m-tile m as in Accumulators.
template <int kMTiles>
struct RowState {
  float max[kMTiles][2];  // that weights are taken against: of the scaled scores, in units of log2
  float sum[kMTiles][2];  // this lane's share; the four lanes add up at the end

  __device__ __forceinline__ void clear() {
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
      max[m][0] = max[m][1] = -INFINITY;
      sum[m][0] = sum[m][1] = 0;
    }
  }
};

// Hides the keys a row does not see: `band` of the query block, `row` the lane's first row in it,
// `key` its first column's key.
template <int kMTiles, int kKeys>
__device__ __forceinline__ void apply_mask(Accumulators<kMTiles, kKeys>& s, RowBand band,
                                           int seqlen_kv, int row, int key) {
  const int row_begin = band.begin + row - key;
  const int row_end = band.end + row - key;
  const int exist = seqlen_kv - key;
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int begin = row_begin + m * 16 + r * 8;
      const int end = min(row_end + m * 16 + r * 8, exist);
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const int column = n * 8 + c;
          if (column < begin || column >= end) s.at[m][n][2 * r + c] = -INFINITY;
        }
      }
    }
  }
}

// Largest score of each row among the warp's keys.
template <int kMTiles, int kKeys>
__device__ __forceinline__ void row_maxima(float (&maxima)[kMTiles][2],
                                           const Accumulators<kMTiles, kKeys>& s) {
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float max = s.at[m][0][2 * r];
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        max = fmaxf(max, fmaxf(s.at[m][n][2 * r], s.at[m][n][2 * r + 1]));
      }
      max = fmaxf(max, __shfl_xor_sync(0xFFFFFFFFU, max, 1));
      maxima[m][r] = fmaxf(max, __shfl_xor_sync(0xFFFFFFFFU, max, 2));
    }
  }
}

// Turns scores into unnormalised weights. The maximum that a row's weights are taken against moves,
// and what was summed before is rescaled, only where a score has outgrown it by more than a factor
// of 2^`lag_log2`; 0 keeps it the largest. The result is the same for any lag, since O and the sums
// hold the same maximum and the division takes it out; weights reach 2^lag_log2, so T must.
template <int kMTiles, int kKeys, int kWidth>
__device__ __forceinline__ void online_softmax(Accumulators<kMTiles, kKeys>& s,
                                               RowState<kMTiles>& rows,
                                               Accumulators<kMTiles, kWidth>& o, float scale_log2,
                                               float lag_log2) {
  float maxima[kMTiles][2];
  row_maxima(maxima, s);
  float old_max[kMTiles][2];
  float shift[kMTiles][2];
  bool moved = false;
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      // The maximum is kept as it is subtracted, scaled and rounded: the factor is exactly 1 where
      // it stands, so that no rounding adds up over the blocks of a long row.
      const float block_max = maxima[m][r] * scale_log2;
      old_max[m][r] = rows.max[m][r];
      if (block_max > old_max[m][r] + lag_log2) {  // also the first score of a row, after -inf
        rows.max[m][r] = block_max;
        moved = true;
      }
      // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
      shift[m][r] = rows.max[m][r] == -INFINITY ? 0.0F : rows.max[m][r];
    }
  }
  if (__any_sync(0xFFFFFFFFU, moved)) {
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float rescale = ptx::ex2(old_max[m][r] - shift[m][r]);
        rows.sum[m][r] *= rescale;
#pragma unroll
        for (int n = 0; n < kWidth / 8; ++n) {
          o.at[m][n][2 * r] *= rescale;
          o.at[m][n][2 * r + 1] *= rescale;
        }
      }
    }
  }
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = 0.0F;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          const float weight = ptx::ex2(s.at[m][n][2 * r + c] * scale_log2 - shift[m][r]);
          s.at[m][n][2 * r + c] = weight;
          sum += weight;
        }
      }
      rows.sum[m][r] += sum;
    }
  }
}

// Divides by the row sums and writes LSE of the warp's rows, the first at `lse`; rows past `rows`
// are left out. A row that saw no key gets O = 0 and LSE = -inf.
template <int kMTiles, int kWidth>
__device__ __forceinline__ void normalise(Accumulators<kMTiles, kWidth>& o,
                                          const RowState<kMTiles>& state, float* lse, int rows,
                                          int lane) {
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = state.sum[m][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const int row = m * 16 + r * 8 + (lane >> 2);
      const bool empty = sum == 0.0F;
      if ((lane & 3) == 0 && row < rows) {
        lse[row] = empty ? -INFINITY : state.max[m][r] * std::numbers::ln2_v<float> + logf(sum);
      }
      const float inverse = empty ? 0.0F : 1.0F / sum;
#pragma unroll
      for (int n = 0; n < kWidth / 8; ++n) {
        o.at[m][n][2 * r] *= inverse;
        o.at[m][n][2 * r + 1] *= inverse;
      }
    }
  }
}

}  // namespace rooflash
