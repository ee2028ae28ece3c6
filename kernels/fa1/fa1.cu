// FlashAttention forward, algorithm 1, on mma.sync (sm_80 and up).
//
// Dao et al., "FlashAttention" (arXiv 2205.14135): one CTA a (head, batch item); K and V blocks in
// the outer loop, as large as shared memory allows, query blocks in the inner one; O, the row
// maxima and the row sums live in device memory, fetched and put back on each visit of a query
// block, O divided by its row sums every time. The warps split the keys of a block, so each has a
// part of every row's maximum, sum and output, and they exchange all three through shared memory.
// Expected limit: O's way to memory and back, the exchange, and too few CTAs for long sequences.
#include <cuda_runtime.h>

#include <cmath>
#include <numbers>

#include "common/forward_arguments.cuh"
#include "common/launch.hpp"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/special.cuh"
#include "config.hpp"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash::fa1 {

constexpr int kMTiles = kBlockM / 16;

// What algorithm 1 keeps of a row in memory, besides O.
struct Statistics {
  float max;  // of the scaled scores, in units of log2
  float sum;
};

// A group of kSlices warps: it visits every kGroups-th query block, always the same, so a thread
// reads back from memory what it wrote itself.
template <class C>
struct Group {
  int index, thread, warp, lane;
  std::uint32_t q_tile;
  float* parts;            // [kSlices][kBlockM][kChunk] of O
  float4* slices;          // [kBlockM], a maximum or a sum of each slice
  Statistics* statistics;  // [kBlockM], as they were fetched

  __device__ __forceinline__ explicit Group(unsigned char* smem)
      : index(static_cast<int>(threadIdx.x) / C::kGroupThreads),
        thread(static_cast<int>(threadIdx.x) % C::kGroupThreads),
        warp(thread / 32),
        lane(thread % 32) {
    unsigned char* const own = smem + index * C::kGroupBytes;
    q_tile = ptx::smem_address(own);
    parts = reinterpret_cast<float*>(own + C::kQueryBytes);
    slices = reinterpret_cast<float4*>(own + C::kQueryBytes + C::kExchangeBytes);
    statistics = reinterpret_cast<Statistics*>(slices + kBlockM);
  }
  // Addresses that follow from the lane are worked out on each visit: kept, they would cost
  // registers that the accumulators need.
  __device__ __forceinline__ void refresh() { lane = ptx::fresh(lane); }
  __device__ __forceinline__ void sync() const { ptx::barrier_sync(1 + index, C::kGroupThreads); }
  // Row r of m-tile m of the lane's accumulators, within the query block.
  __device__ __forceinline__ int row(int m, int r) const { return m * 16 + r * 8 + (lane >> 2); }
  // Hands the others this warp's part of a value per row, which the row's first lane writes.
  __device__ __forceinline__ void share(const float (&values)[kMTiles][2]) const {
    if ((lane & 3) != 0) return;
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        reinterpret_cast<float*>(slices + row(m, r))[warp] = values[m][r];
      }
    }
  }
};

__device__ __forceinline__ float largest(float4 v) {
  return fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w));
}
// A row with no key yet has maximum -inf; 0 in its place avoids inf - inf.
__device__ __forceinline__ float shift_of(float max) {
  return max == -INFINITY ? 0.0F : max;
}

// Turns scores into weights, rounded to T, and sums them up over this warp's slice.
template <class T, int kKeys>
__device__ __forceinline__ void exponentiate(std::uint32_t (&weights)[kKeys / 16][kMTiles][4],
                                             float (&sums)[kMTiles][2],
                                             Accumulators<kMTiles, kKeys>& s,
                                             const float (&shift)[kMTiles][2], float scale_log2) {
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) sums[m][0] = sums[m][1] = 0.0F;
#pragma unroll
  for (int step = 0; step < kKeys / 16; ++step) {
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float& weight = s.at[m][2 * step + i / 4][i % 4];
        weight = ptx::ex2(weight * scale_log2 - shift[m][i % 4 / 2]);
        sums[m][i % 4 / 2] += weight;
      }
    }
    pack_weights<T>(weights[step], s, step);
  }
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      sums[m][r] += __shfl_xor_sync(0xFFFFFFFFU, sums[m][r], 1);
      sums[m][r] += __shfl_xor_sync(0xFFFFFFFFU, sums[m][r], 2);
    }
  }
}

// The exchange of one chunk of O. Parts lie in rows of eight pieces of 16 bytes; two neighbouring
// pieces change places by the row, so that the accumulators' rows fall into different banks.
__device__ __forceinline__ int part_offset(int slice, int row, int piece) {
  return ((slice * kBlockM + row) * kChunk) + ((piece ^ ((row & 3) << 1)) << 2);
}

template <class C>
__device__ __forceinline__ void write_part(const Group<C>& group,
                                           const Accumulators<kMTiles, kChunk>& part) {
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
    for (int n = 0; n < kChunk / 8; ++n) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const int piece = 2 * n + (group.lane & 3) / 2;
        float* const target = group.parts + part_offset(group.warp, group.row(m, r), piece);
        reinterpret_cast<float2*>(target)[group.lane & 1] =
            make_float2(part.at[m][n][2 * r], part.at[m][n][2 * r + 1]);
      }
    }
  }
}

// Sum of all slices' parts of four columns of a row.
template <class C>
__device__ __forceinline__ float4 sum_parts(const Group<C>& group, int row, int piece) {
  float4 sum = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
#pragma unroll
  for (int slice = 0; slice < kSlices; ++slice) {
    const float4 part =
        *reinterpret_cast<const float4*>(group.parts + part_offset(slice, row, piece));
    sum.x += part.x;
    sum.y += part.y;
    sum.z += part.z;
    sum.w += part.w;
  }
  return sum;
}

// O goes through the exchange as four columns a thread, of rows kRowStep apart.
constexpr int kPieces = kChunk / 4;
constexpr int kRowStep = 32 * kSlices / kPieces;
constexpr int kOwnRows = kBlockM / kRowStep;

// How a thread brings its rows of O up to date: O = keep O + inverse P V.
struct RowFactors {
  float max[kOwnRows];   // m of algorithm 1, new
  float keep[kOwnRows];  // first the old sum, rescaled to the new maximum
  float inverse[kOwnRows];
};

template <class T, int kHeaddim, bool kLarge>
__global__ void __launch_bounds__(Config<kHeaddim, kLarge>::kThreads, 1)
    rf_fa1_fwd(const __grid_constant__ ForwardArguments args, Statistics* all_statistics) {
  using C = Config<kHeaddim, kLarge>;
  constexpr int kSliceKeys = C::kSliceKeys;
  extern __shared__ __align__(128) unsigned char smem[];
  // V lies in tiles of one chunk of columns each.
  const std::uint32_t k_tile = ptx::smem_address(smem);
  const std::uint32_t v_tiles = k_tile + C::kKeyBytes;
  constexpr int kChunkBytes = kTileBytes<C::kBlockN, kChunk>;
  Group<C> group(smem + 2 * C::kKeyBytes);

  const auto head_index = static_cast<int>(blockIdx.x);
  const int query_blocks = (args.seqlen_q + kBlockM - 1) / kBlockM;
  const Head<T> head = head_of<T>(args, head_index);
  // O in the workspace has the layout of O.
  const std::int64_t o_offset = head.o - static_cast<const T*>(args.tensors.o);
  auto* const stored_o = static_cast<float*>(args.tensors.workspace);
  Statistics* const stored =
      all_statistics + static_cast<std::int64_t>(head_index) * query_blocks * kBlockM;

  const auto blocks_of = [&](int query_block) {
    const int first_row = query_block * kBlockM;
    return key_blocks(args.band, first_row, min(kBlockM, args.seqlen_q - first_row), args.seqlen_kv,
                      C::kBlockN);
  };
  const auto load_query = [&](int query_block, bool first_visit) {
    const int first_row = query_block * kBlockM;
    load_tile<T, kHeaddim, kBlockM, C::kGroupThreads>(
        group.q_tile, head.q + first_row * head.q_stride, head.q_stride, args.seqlen_q - first_row,
        args.headdim, group.thread);
    constexpr int kAtOnce = 16 / sizeof(Statistics);
    if (!first_visit && group.thread < kBlockM / kAtOnce) {
      const int row = group.thread * kAtOnce;
      ptx::cp_async_16(ptx::smem_address(group.statistics + row), stored + first_row + row, true);
    }
    ptx::cp_async_commit();
  };

  // Rows that see no key.
  for (int block = group.index; block < query_blocks; block += C::kGroups) {
    const KeyBlocks blocks = blocks_of(block);
    if (blocks.begin < blocks.end) continue;
    const int rows = min(kBlockM, args.seqlen_q - block * kBlockM);
    for (int i = group.thread; i < rows * args.headdim_v; i += C::kGroupThreads) {
      const std::int64_t row = block * kBlockM + i / args.headdim_v;
      head.o[row * head.o_stride + i % args.headdim_v] = from_float<T>(0.0F);
    }
    if (group.thread < rows) head.lse[block * kBlockM + group.thread] = -INFINITY;
  }

#pragma unroll 1
  for (int first_key = 0; first_key < args.seqlen_kv; first_key += C::kBlockN) {
    const int keys = min(C::kBlockN, args.seqlen_kv - first_key);
    const QueryRows seen = query_rows(args.band, first_key, keys, args.seqlen_q);
    if (seen.begin >= seen.end) continue;
    const int begin = static_cast<int>(seen.begin) / kBlockM;
    const int end = (static_cast<int>(seen.end) + kBlockM - 1) / kBlockM;
    const int key_block = first_key / C::kBlockN;

    __syncthreads();  // every group is done with the last K and V
    if (threadIdx.x < C::kLoaders) {
      load_tile<T, kHeaddim, C::kBlockN, C::kLoaders>(k_tile, head.k + first_key * head.k_stride,
                                                      head.k_stride, keys, args.headdim);
      for (int column = 0; column < args.headdim_v; column += kChunk) {
        load_tile<T, kChunk, C::kBlockN, C::kLoaders>(v_tiles + column / kChunk * kChunkBytes,
                                                      head.v + first_key * head.v_stride + column,
                                                      head.v_stride, keys, args.headdim_v - column);
      }
    }
    ptx::cp_async_commit();
    // The group's first query block from `begin` on.
    const int first = begin + (group.index + C::kGroups - begin % C::kGroups) % C::kGroups;
    if (first < end) load_query(first, key_block == static_cast<int>(blocks_of(first).begin));
    ptx::cp_async_wait<0>();
    __syncthreads();

#pragma unroll 1
    for (int query_block = first; query_block < end; query_block += C::kGroups) {
      const int first_row = query_block * kBlockM;
      const KeyBlocks blocks = blocks_of(query_block);
      const bool first_visit = key_block == static_cast<int>(blocks.begin);
      const bool last_visit = key_block == static_cast<int>(blocks.end) - 1;
      group.refresh();
      Accumulators<kMTiles, kSliceKeys> s;
      scores<T, kHeaddim>(s, group.q_tile, k_tile + group.warp * kTileBytes<kSliceKeys, kHeaddim>,
                          group.lane);
      const RowBand visible = row_band(args.band, first_row, kBlockM, args.seqlen_kv);
      if (!sees_all(visible, kBlockM, first_key, C::kBlockN, args.seqlen_kv)) {
        apply_mask(s, visible, args.seqlen_kv, group.row(0, 0),
                   first_key + group.warp * kSliceKeys + 2 * (group.lane & 3));
      }
      float of_slice[kMTiles][2];
      row_maxima(of_slice, s);
      group.share(of_slice);
      group.sync();  // the maxima of all slices are there; every warp is done with Q

      const auto new_max = [&](int row, Statistics old) {
        return fmaxf(old.max, largest(group.slices[row]) * args.scale_log2);
      };
      const auto old_of = [&](int row) {
        return first_visit ? Statistics{-INFINITY, 0.0F} : group.statistics[row];
      };
      float shift[kMTiles][2];
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int row = group.row(m, r);
          shift[m][r] = shift_of(new_max(row, old_of(row)));
        }
      }
      const int own_row = group.thread / kPieces;
      const int own_piece = group.thread % kPieces;
      RowFactors factors;
#pragma unroll
      for (int i = 0; i < kOwnRows; ++i) {
        const int row = own_row + i * kRowStep;
        const Statistics old = old_of(row);
        factors.max[i] = new_max(row, old);
        factors.keep[i] = old.sum * ptx::ex2(old.max - shift_of(factors.max[i]));
      }
      group.sync();  // the maxima and the statistics have been read

      std::uint32_t weights[kSliceKeys / 16][kMTiles][4];
      exponentiate<T>(weights, of_slice, s, shift, args.scale_log2);
      group.share(of_slice);
      const int next = query_block + C::kGroups;
      if (next < end) load_query(next, key_block == static_cast<int>(blocks_of(next).begin));

#pragma unroll 1
      for (int column = 0; column < args.headdim_v; column += kChunk) {
        const int own_column = column + own_piece * 4;
        const auto exists = [&](int i) {
          return first_row + own_row + i * kRowStep < args.seqlen_q && own_column < args.headdim_v;
        };
        const auto offset = [&](int i) {
          return o_offset + (first_row + own_row + i * kRowStep) * head.o_stride + own_column;
        };
        float4 old[kOwnRows];
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
          old[i] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
          if (!first_visit && exists(i)) {
            old[i] = __ldcg(reinterpret_cast<const float4*>(stored_o + offset(i)));
          }
        }
        Accumulators<kMTiles, kChunk> part;
        part.clear();
        const auto operand = [&](std::uint32_t(&a)[kMTiles][4], int step) {
#pragma unroll
          for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
            for (int j = 0; j < 4; ++j) a[m][j] = weights[step][m][j];
          }
        };
        weighted_sum_of<T, kSliceKeys>(
            part, operand,
            v_tiles + column / kChunk * kChunkBytes + group.warp * kTileBytes<kSliceKeys, kChunk>,
            group.lane);
        if (column > 0) group.sync();  // the parts of the last chunk have been read
        write_part(group, part);
        group.sync();  // all parts are there, and the sums of all slices

        if (column == 0) {
#pragma unroll
          for (int i = 0; i < kOwnRows; ++i) {
            const int row = own_row + i * kRowStep;
            const float4 sums = group.slices[row];
            const float sum = factors.keep[i] + (sums.x + sums.y + sums.z + sums.w);
            factors.inverse[i] = sum == 0.0F ? 0.0F : 1.0F / sum;
            factors.keep[i] *= factors.inverse[i];
            if (own_piece != 0) continue;
            if (!last_visit) {
              stored[first_row + row] = {factors.max[i], sum};
            } else if (first_row + row < args.seqlen_q) {
              head.lse[first_row + row] =
                  sum == 0.0F ? -INFINITY : factors.max[i] * std::numbers::ln2_v<float> + logf(sum);
            }
          }
        }
#pragma unroll
        for (int i = 0; i < kOwnRows; ++i) {
          if (!exists(i)) continue;
          float4 o = sum_parts(group, own_row + i * kRowStep, own_piece);
          o.x = old[i].x * factors.keep[i] + o.x * factors.inverse[i];
          o.y = old[i].y * factors.keep[i] + o.y * factors.inverse[i];
          o.z = old[i].z * factors.keep[i] + o.z * factors.inverse[i];
          o.w = old[i].w * factors.keep[i] + o.w * factors.inverse[i];
          if (last_visit) {
            *reinterpret_cast<uint2*>(static_cast<T*>(args.tensors.o) + offset(i)) =
                make_uint2(pack<T>(o.x, o.y), pack<T>(o.z, o.w));
          } else {
            __stcg(reinterpret_cast<float4*>(stored_o + offset(i)), o);
          }
        }
      }
      ptx::cp_async_wait<0>();
      group.sync();  // the next Q has arrived; the parts and the sums have been read
    }
  }
}

template <class T, int kHeaddim, bool kLarge>
Prepared prepare(const Problem& p, const Tensors& t, const DeviceLimits& device) {
  using C = Config<kHeaddim, kLarge>;
  const ForwardArguments args = forward_arguments(p, t);
  auto* const statistics =
      reinterpret_cast<Statistics*>(static_cast<float*>(t.workspace) + o_elements(p));
  const std::int64_t grid = p.batch * p.heads_q;
  auto* const kernel = rf_fa1_fwd<T, kHeaddim, kLarge>;
  const Resources resources = prepare_kernel(reinterpret_cast<const void*>(kernel), C::kThreads,
                                             C::kSmemBytes, grid, device.sm_count);
  return {[kernel, args, statistics, grid](CUstream_st* stream) {
            kernel<<<static_cast<unsigned>(grid), C::kThreads, C::kSmemBytes, stream>>>(args,
                                                                                        statistics);
            check_launch(cudaGetLastError(), "launching rf_fa1_fwd");
          },
          resources};
}

template <std::size_t kIndex>
struct Prepare {
  static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
    constexpr Variant kVariant = kVariants[kIndex];
    using T = Element<kVariant.dtype>;
    constexpr int kHeaddim = kVariant.headdim;
    const bool large = device.smem_per_block_bytes >= Config<kHeaddim, true>::kSmemBytes;
    return large ? prepare<T, kHeaddim, true>(p, t, device)
                 : prepare<T, kHeaddim, false>(p, t, device);
  }
};

constexpr auto kPrepareTable = bind_variants<kVariants, Prepare>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::fa1
