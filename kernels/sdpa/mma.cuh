// The kernel for 16-bit elements, on tensor cores.
#pragma once

#include <cmath>
#include <numbers>

#include "common/forward_arguments.cuh"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
#include "config.hpp"

namespace rooflash::sdpa {

// Two by two warps: `half_q` of the queries, `half_kv` of the keys of S or of the columns of O.
constexpr int kMTiles = 2;
constexpr int kWarpRows = 16 * kMTiles;

// CTAs of an SM, by the registers that O takes and the shared memory that an SM has.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
template <int kHeaddim>
constexpr int kBlocksPerSm = kHeaddim == 64 ? 3 : 2;
#else
template <int kHeaddim>
constexpr int kBlocksPerSm = kHeaddim <= 128 ? 3 : 2;
#endif

// Turns scores into unnormalised weights and rescales what was summed before. `block_max` is of all
// keys of the step.
template <int kKeys, int kColumns>
__device__ __forceinline__ void softmax(Accumulators<kMTiles, kKeys>& s, RowState<kMTiles>& rows,
                                        Accumulators<kMTiles, kColumns>& o,
                                        const float (&block_max)[kMTiles][2], float scale_log2) {
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float old_max = rows.max[m][r];
      const float new_max = fmaxf(old_max, block_max[m][r] * scale_log2);
      rows.max[m][r] = new_max;
      // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
      const float shift = new_max == -INFINITY ? 0.0F : new_max;
      const float rescale = ptx::ex2(old_max - shift);
      float sum = 0.0F;
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          float& weight = s.at[m][n][2 * r + c];
          weight = ptx::ex2(weight * scale_log2 - shift);
          sum += weight;
        }
      }
      rows.sum[m][r] = rows.sum[m][r] * rescale + sum;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        o.at[m][n][2 * r] *= rescale;
        o.at[m][n][2 * r + 1] *= rescale;
      }
    }
  }
}

// Writes the warp's weights, rounded to T, into the tile of all queries and keys of the step.
template <class T, int kWidth, int kKeys>
__device__ __forceinline__ void store_weights(const Accumulators<kMTiles, kKeys>& p,
                                              unsigned char* tile, int row, int first_chunk,
                                              int lane) {
  using Layout = TileLayout<kWidth>;
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int n = 0; n < kKeys / 8; ++n) {
        unsigned char* const chunk = tile + Layout::offset(row + m * 16 + r * 8, first_chunk + n);
        reinterpret_cast<std::uint32_t*>(chunk)[lane & 3] =
            pack<T>(p.at[m][n][2 * r], p.at[m][n][2 * r + 1]);
      }
    }
  }
}

template <class T, int kHeaddim>
__global__ void __launch_bounds__(kThreads, kBlocksPerSm<kHeaddim>)
    rf_sdpa_fwd(const __grid_constant__ ForwardArguments args, int query_blocks) {
  using C = MmaConfig<kHeaddim>;
  constexpr int kKeys = C::kBlockN / 2;   // of a warp, in S
  constexpr int kColumns = kHeaddim / 2;  // of a warp, in O
  extern __shared__ __align__(128) unsigned char smem[];
  // V lies in two tiles, the left and the right half of its columns; so will O, in Q's place.
  const std::uint32_t q_tile = ptx::smem_address(smem);
  const std::uint32_t k_tile = q_tile + C::kQueryBytes;
  const std::uint32_t v_tiles = k_tile + C::kKeyBytes;
  unsigned char* const weights = smem + C::kQueryBytes + 2 * C::kKeyBytes;
  const std::uint32_t weight_tile = ptx::smem_address(weights);
  // Of each row and half of the keys.
  auto* const halves = reinterpret_cast<float2*>(weights + C::kWeightBytes);

  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int half_q = static_cast<int>(threadIdx.x) / 64;
  const int half_kv = static_cast<int>(threadIdx.x) / 32 % 2;
  const int warp_row = half_q * kWarpRows;
  const int lane_row = warp_row + (lane >> 2);
  // Query blocks of one head are neighbours, so that its K and V stay in L2; the last come first,
  // which are the longest under a causal mask.
  const int head_index = static_cast<int>(blockIdx.x) / query_blocks;
  const int query_block = query_blocks - 1 - static_cast<int>(blockIdx.x) % query_blocks;
  const int first_query = query_block * C::kBlockM;
  const int rows = min(C::kBlockM, args.seqlen_q - first_query);
  const Head<T> head = head_of<T>(args, head_index);
  const KeyBlocks blocks = key_blocks(args.band, first_query, rows, args.seqlen_kv, C::kBlockN);
  const RowBand visible = row_band(args.band, first_query, C::kBlockM, args.seqlen_kv);

  const auto load_keys = [&](int block) {
    const int key = block * C::kBlockN;
    load_tile<T, kHeaddim, C::kBlockN, kThreads>(k_tile, head.k + key * head.k_stride,
                                                 head.k_stride, args.seqlen_kv - key, args.headdim);
    ptx::cp_async_commit();
  };
  const auto load_values = [&](int block) {
    const int key = block * C::kBlockN;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      load_tile<T, kColumns, C::kBlockN, kThreads>(
          v_tiles + half * (C::kKeyBytes / 2), head.v + key * head.v_stride + half * kColumns,
          head.v_stride, args.seqlen_kv - key, args.headdim_v - half * kColumns);
    }
    ptx::cp_async_commit();
  };
  // One value a row of each warp, from the row's first lane.
  const auto share = [&](const float(&values)[kMTiles][2]) {
    if ((lane & 3) != 0) return;
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        reinterpret_cast<float*>(halves + lane_row + m * 16 + r * 8)[half_kv] = values[m][r];
      }
    }
  };

  Accumulators<kMTiles, kColumns> o;
  RowState<kMTiles> state;
  o.clear();
  state.clear();
  const auto begin = static_cast<int>(blocks.begin);
  const auto end = static_cast<int>(blocks.end);
  if (begin < end) {
    load_tile<T, kHeaddim, C::kBlockM, kThreads>(q_tile, head.q + first_query * head.q_stride,
                                                 head.q_stride, rows, args.headdim);
    load_keys(begin);
  }
  // K of the next block is loaded during softmax and P V, V during Q K^T.
#pragma unroll 1
  for (int block = begin; block < end; ++block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // K has arrived; every warp is done with the previous V and P
    load_values(block);
    Accumulators<kMTiles, kKeys> s;
    scores<T, kHeaddim>(s, q_tile + warp_row * TileLayout<kHeaddim>::kRowBytes,
                        k_tile + half_kv * kTileBytes<kKeys, kHeaddim>, lane);
    if (!sees_all(visible, C::kBlockM, block * C::kBlockN, C::kBlockN, args.seqlen_kv)) {
      apply_mask(s, visible, args.seqlen_kv, lane_row,
                 block * C::kBlockN + half_kv * kKeys + 2 * (lane & 3));
    }
    float maxima[kMTiles][2];
    row_maxima(maxima, s);
    share(maxima);
    __syncthreads();  // the maxima of both halves are there; every warp is done with K
    if (block + 1 < end) load_keys(block + 1);
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const float2 of_halves = halves[lane_row + m * 16 + r * 8];
        maxima[m][r] = fmaxf(of_halves.x, of_halves.y);
      }
    }
    softmax(s, state, o, maxima, args.scale_log2);
    store_weights<T, C::kBlockN>(s, weights, lane_row, half_kv * (kKeys / 8), lane);
    if (block + 1 < end) {
      ptx::cp_async_wait<1>();  // V; K may still be on its way
    } else {
      ptx::cp_async_wait<0>();
    }
    __syncthreads();  // V and the weights of all warps are there
    using Layout = TileLayout<C::kBlockN>;
    const std::uint32_t own_weights = weight_tile + warp_row * Layout::kRowBytes;
    const auto operand = [&](std::uint32_t(&a)[kMTiles][4], int step) {
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        ptx::ldmatrix_x4(
            a[m], own_weights + m * 16 * Layout::kRowBytes + Layout::rows_first(lane, 2 * step));
      }
    };
    weighted_sum_of<T, C::kBlockN>(o, operand, v_tiles + half_kv * (C::kKeyBytes / 2), lane);
  }

  // The row sums of both halves of the keys.
  float sums[kMTiles][2];
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = state.sum[m][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sums[m][r] = sum + __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
    }
  }
  share(sums);
  __syncthreads();  // the sums are there; every warp is done with Q
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = lane_row + m * 16 + r * 8;
      const float sum = halves[row].x + halves[row].y;
      const bool empty = sum == 0.0F;
      if ((lane & 3) == 0 && half_kv == 0 && row < rows) {
        head.lse[first_query + row] =
            empty ? -INFINITY : state.max[m][r] * std::numbers::ln2_v<float> + logf(sum);
      }
      const float inverse = empty ? 0.0F : 1.0F / sum;
#pragma unroll
      for (int n = 0; n < kColumns / 8; ++n) {
        o.at[m][n][2 * r] *= inverse;
        o.at[m][n][2 * r + 1] *= inverse;
      }
    }
  }
  const int warp = half_q * 2 + half_kv;
  const std::int64_t first_row = first_query + warp_row;
  store_rows(o, smem + warp * kTileBytes<kWarpRows, kColumns>,
             head.o + first_row * head.o_stride + half_kv * kColumns, head.o_stride,
             rows - warp_row, args.headdim_v - half_kv * kColumns, lane);
}

}  // namespace rooflash::sdpa
