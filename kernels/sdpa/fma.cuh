// The kernel for fp32, on FMA units: every product and sum in fp32, so that O keeps the accuracy of
// the format.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/forward_arguments.cuh"
#include "common/ptx/cp_async.cuh"
#include "config.hpp"

namespace rooflash::sdpa {

// 16 x 8 threads. A thread has rows row, row + 16, ... of the query block; of S keys lane, lane +
// 8,
// ... of the step, of O four columns from 4 lane on, and the same 32, 64, ... further on.
constexpr int kRowThreads = 16;
constexpr int kLanes = kThreads / kRowThreads;

template <int kHeaddim>
struct FmaShape {
  using C = FmaConfig<kHeaddim>;
  static constexpr int kRows = C::kBlockM / kRowThreads;  // of a thread
  static constexpr int kKeys = C::kBlockN / kLanes;
  static constexpr int kPieces = kHeaddim / (4 * kLanes);  // of four columns
};

// Combines a value over the lanes of a row; every one gets the result.
template <class Combine>
__device__ __forceinline__ float over_row(float value, Combine combine) {
#pragma unroll
  for (int step = kLanes / 2; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
  }
  return value;
}

__device__ __forceinline__ void add_scaled(float4& sum, float factor, const float4& value) {
  sum.x = fmaf(factor, value.x, sum.x);
  sum.y = fmaf(factor, value.y, sum.y);
  sum.z = fmaf(factor, value.z, sum.z);
  sum.w = fmaf(factor, value.w, sum.w);
}

// Starts the copy of `kRows` rows of one head; rows past `rows` and columns past `columns` become
// zeros.
template <int kHeaddim, int kRows>
__device__ __forceinline__ void load_fp32_tile(float* tile, const float* source,
                                               std::int64_t stride, int rows, int columns) {
  constexpr int kChunks = kHeaddim / 4;  // of 16 bytes
#pragma unroll 1
  for (int i = static_cast<int>(threadIdx.x); i < kRows * kChunks; i += kThreads) {
    const int row = i / kChunks;
    const int column = i % kChunks * 4;
    ptx::cp_async_16(ptx::smem_address(tile + row * FmaConfig<kHeaddim>::kStride + column),
                     source + row * stride + column, row < rows && column < columns);
  }
}

// S = Q K^T for the thread's rows and keys. `q` and `k` are the first of each.
template <int kHeaddim>
__device__ __forceinline__ void fp32_scores(
    float (&s)[FmaShape<kHeaddim>::kRows][FmaShape<kHeaddim>::kKeys], const float* q,
    const float* k) {
  using Shape = FmaShape<kHeaddim>;
  constexpr int kStride = FmaConfig<kHeaddim>::kStride;
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int j = 0; j < Shape::kKeys; ++j) s[i][j] = 0.0F;
  }
#pragma unroll 4
  for (int column = 0; column < kHeaddim; column += 4) {
    float4 key[Shape::kKeys];
#pragma unroll
    for (int j = 0; j < Shape::kKeys; ++j) {
      key[j] = *reinterpret_cast<const float4*>(k + j * kLanes * kStride + column);
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const auto query = *reinterpret_cast<const float4*>(q + i * kRowThreads * kStride + column);
#pragma unroll
      for (int j = 0; j < Shape::kKeys; ++j) {
        s[i][j] = fmaf(query.x, key[j].x, s[i][j]);
        s[i][j] = fmaf(query.y, key[j].y, s[i][j]);
        s[i][j] = fmaf(query.z, key[j].z, s[i][j]);
        s[i][j] = fmaf(query.w, key[j].w, s[i][j]);
      }
    }
  }
}

// The step's part of O. `weights` is the thread's first row of P, `v` its first column.
template <int kHeaddim>
__device__ __forceinline__ void fp32_weighted_sum(
    float4 (&part)[FmaShape<kHeaddim>::kRows][FmaShape<kHeaddim>::kPieces], const float* weights,
    const float* v) {
  using C = FmaConfig<kHeaddim>;
  using Shape = FmaShape<kHeaddim>;
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
    for (int c = 0; c < Shape::kPieces; ++c) part[i][c] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
  }
#pragma unroll 2
  for (int key = 0; key < C::kBlockN; key += 4) {
    float4 p[Shape::kRows];
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      p[i] = *reinterpret_cast<const float4*>(weights + i * kRowThreads * C::kWeightStride + key);
    }
#pragma unroll
    for (int k = 0; k < 4; ++k) {
#pragma unroll
      for (int c = 0; c < Shape::kPieces; ++c) {
        const auto value =
            *reinterpret_cast<const float4*>(v + (key + k) * C::kStride + c * 4 * kLanes);
#pragma unroll
        for (int i = 0; i < Shape::kRows; ++i) {
          const float weight = k == 0 ? p[i].x : k == 1 ? p[i].y : k == 2 ? p[i].z : p[i].w;
          add_scaled(part[i][c], weight, value);
        }
      }
    }
  }
}

template <int kHeaddim>
__global__ void __launch_bounds__(kThreads, FmaConfig<kHeaddim>::kBlocksPerSm)
    rf_sdpa_fwd_fp32(const __grid_constant__ ForwardArguments args, int query_blocks) {
  using C = FmaConfig<kHeaddim>;
  using Shape = FmaShape<kHeaddim>;
  constexpr int kStride = C::kStride;
  extern __shared__ __align__(128) float fp32_smem[];
  float* const q_tile = fp32_smem;
  float* const k_tile = q_tile + C::kBlockM * kStride;
  float* const v_tile = k_tile + C::kBlockN * kStride;
  float* const weight_tile = v_tile + C::kBlockN * kStride;

  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int row = static_cast<int>(threadIdx.x) / kLanes;
  const int head_index = static_cast<int>(blockIdx.x) / query_blocks;
  const int query_block = query_blocks - 1 - static_cast<int>(blockIdx.x) % query_blocks;
  const int first_query = query_block * C::kBlockM;
  const int rows = min(C::kBlockM, args.seqlen_q - first_query);
  const Head<float> head = head_of<float>(args, head_index);
  const KeyBlocks blocks = key_blocks(args.band, first_query, rows, args.seqlen_kv, C::kBlockN);
  const RowBand visible = row_band(args.band, first_query, C::kBlockM, args.seqlen_kv);

  const auto load_keys = [&](int block) {
    const int key = block * C::kBlockN;
    load_fp32_tile<kHeaddim, C::kBlockN>(k_tile, head.k + key * head.k_stride, head.k_stride,
                                         args.seqlen_kv - key, args.headdim);
    ptx::cp_async_commit();
  };
  const auto load_values = [&](int block) {
    const int key = block * C::kBlockN;
    load_fp32_tile<kHeaddim, C::kBlockN>(v_tile, head.v + key * head.v_stride, head.v_stride,
                                         args.seqlen_kv - key, args.headdim_v);
    ptx::cp_async_commit();
  };

  float4 o[Shape::kRows][Shape::kPieces] = {};
  float row_max[Shape::kRows];
  float row_sum[Shape::kRows];  // this lane's share
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
    row_max[i] = -INFINITY;
    row_sum[i] = 0.0F;
  }
  const auto begin = static_cast<int>(blocks.begin);
  const auto end = static_cast<int>(blocks.end);
  if (begin < end) {
    load_fp32_tile<kHeaddim, C::kBlockM>(q_tile, head.q + first_query * head.q_stride,
                                         head.q_stride, rows, args.headdim);
    load_keys(begin);
  }
#pragma unroll 1
  for (int block = begin; block < end; ++block) {
    ptx::cp_async_wait<0>();
    __syncthreads();  // K has arrived; every warp is done with the previous V
    load_values(block);
    float s[Shape::kRows][Shape::kKeys];
    fp32_scores<kHeaddim>(s, q_tile + row * kStride, k_tile + lane * kStride);
    const bool masked =
        !sees_all(visible, C::kBlockM, block * C::kBlockN, C::kBlockN, args.seqlen_kv);
    float4 part[Shape::kRows][Shape::kPieces];
    float rescale[Shape::kRows];
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const int own_row = row + i * kRowThreads;
      float block_max = -INFINITY;
#pragma unroll
      for (int j = 0; j < Shape::kKeys; ++j) {
        const int key = block * C::kBlockN + lane + j * kLanes;
        const bool hidden =
            key < visible.begin + own_row || key >= min(visible.end + own_row, args.seqlen_kv);
        if (masked && hidden) s[i][j] = -INFINITY;
        block_max = fmaxf(block_max, s[i][j]);
      }
      block_max = over_row(block_max, [](float a, float b) { return fmaxf(a, b); });
      const float old_max = row_max[i];
      const float new_max = fmaxf(old_max, block_max * args.scale_log2);
      row_max[i] = new_max;
      // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
      const float shift = new_max == -INFINITY ? 0.0F : new_max;
      rescale[i] = exp2f(old_max - shift);
      float sum = 0.0F;
#pragma unroll
      for (int j = 0; j < Shape::kKeys; ++j) {
        const float weight = exp2f(fmaf(s[i][j], args.scale_log2, -shift));
        sum += weight;
        weight_tile[own_row * C::kWeightStride + lane + j * kLanes] = weight;
      }
      row_sum[i] = row_sum[i] * rescale[i] + sum;
    }
    ptx::cp_async_wait<0>();
    __syncthreads();  // V has arrived; every warp is done with K
    if (block + 1 < end) load_keys(block + 1);
    fp32_weighted_sum<kHeaddim>(part, weight_tile + row * C::kWeightStride, v_tile + lane * 4);
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
      for (int c = 0; c < Shape::kPieces; ++c) {
        add_scaled(part[i][c], rescale[i], o[i][c]);
        o[i][c] = part[i][c];
      }
    }
  }

#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
    const int own_row = row + i * kRowThreads;
    const float sum = over_row(row_sum[i], [](float a, float b) { return a + b; });
    const bool empty = sum == 0.0F;
    if (own_row >= rows) continue;
    if (lane == 0) {
      head.lse[first_query + own_row] =
          empty ? -INFINITY : row_max[i] * std::numbers::ln2_v<float> + logf(sum);
    }
    // A quotient, not a product with the reciprocal, which would be rounded twice.
    const float divisor = empty ? 1.0F : sum;
    float* const target = head.o + (first_query + own_row) * head.o_stride;
#pragma unroll
    for (int c = 0; c < Shape::kPieces; ++c) {
      const int column = (c * kLanes + lane) * 4;
      if (column >= args.headdim_v) continue;
      const float4& sums = o[i][c];
      *reinterpret_cast<float4*>(target + column) =
          make_float4(sums.x / divisor, sums.y / divisor, sums.z / divisor, sums.w / divisor);
    }
  }
}

}  // namespace rooflash::sdpa
