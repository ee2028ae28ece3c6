// FlashAttention forward, algorithm 1, on mma.sync (sm_80 and up).
//
// Dao et al., "FlashAttention" (arXiv 2205.14135): one CTA a (head, batch item); K and V blocks in
// the outer loop, as large as shared memory allows, query blocks in the inner one; O, the row
// maxima and the row sums live in device memory, fetched and put back on each visit of a query
// block, O divided by its row sums every time. The warps split the keys of a block for S, exchange
// maxima, sums and P through shared memory, and split the columns of O for P V.
// Expected limit: O's way to memory and back, the exchange, and too few CTAs for long sequences.
#include <cuda_runtime.h>

#include <cmath>
#include <numbers>

#include "common/forward_arguments.cuh"
#include "common/launch.hpp"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/shared.cuh"
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

// The same value, which all lanes of a warp hold: the compiler may keep it in a uniform register.
__device__ __forceinline__ int uniform(int value) {
  return __shfl_sync(0xFFFFFFFFU, value, 0);
}

// A group of kSlices warps: it visits every kGroups-th query block, always the same, so a thread
// reads back from memory what it wrote itself.
template <class C>
struct Group {
  int index, thread, warp, lane;
  std::uint32_t q_tiles;   // [kQueryStages]
  std::uint32_t p_tile;    // [kBlockM][kBlockN]
  float4* maxima;          // [kBlockM], of each slice
  float4* sums;            // the same; with one stage in the same place
  Statistics* statistics;  // [kQueryStages][kBlockM], as they were fetched

  __device__ __forceinline__ explicit Group(unsigned char* smem)
      : thread(static_cast<int>(threadIdx.x) % C::kGroupThreads),
        lane(static_cast<int>(threadIdx.x) % 32) {
    const int of_block = uniform(static_cast<int>(threadIdx.x) / 32);
    index = of_block / kSlices;
    warp = of_block % kSlices;
    unsigned char* const own = smem + index * C::kGroupBytes;
    constexpr int kQueriesBytes = C::kQueryStages * C::kQueryBytes;
    q_tiles = ptx::smem_address(own);
    p_tile = q_tiles + kQueriesBytes;
    maxima = reinterpret_cast<float4*>(own + kQueriesBytes + C::kWeightBytes);
    sums = maxima + (C::kQueryStages - 1) * kBlockM;
    statistics = reinterpret_cast<Statistics*>(sums + kBlockM);
  }
  // Addresses that follow from the lane are worked out on each visit: kept, they would cost
  // registers that the accumulators need.
  __device__ __forceinline__ void refresh() { lane = ptx::fresh(lane); }
  __device__ __forceinline__ void sync() const { ptx::barrier_sync(1 + index, C::kGroupThreads); }
  // Row r of m-tile m of the lane's accumulators, within the query block.
  __device__ __forceinline__ int row(int m, int r) const { return m * 16 + r * 8 + (lane >> 2); }
  // Hands the others this warp's part of a value per row, which the row's first lane writes.
  __device__ __forceinline__ void share(float4* slices, const float (&values)[kMTiles][2]) const {
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

// Turns scores into weights, rounded to T, and sums them up over this warp's slice. They stay in
// registers, and go to P's tile for the other warps.
template <class T, class C>
__device__ __forceinline__ void exponentiate(
    std::uint32_t (&weights)[C::kSliceKeys / 16][kMTiles][4], float (&sums)[kMTiles][2],
    Accumulators<kMTiles, C::kSliceKeys>& s, const float (&max)[kMTiles][2], float scale_log2,
    const Group<C>& group) {
  using Layout = TileLayout<C::kBlockN>;
  const std::uint32_t target =
      Layout::advance(group.p_tile + Layout::offset(group.lane >> 2, 0) + (group.lane & 3) * 4,
                      group.warp * (C::kSliceKeys / 8));
#pragma unroll
  for (int m = 0; m < kMTiles; ++m) sums[m][0] = sums[m][1] = 0.0F;
#pragma unroll
  for (int step = 0; step < C::kSliceKeys / 16; ++step) {
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        float& weight = s.at[m][2 * step + i / 4][i % 4];
        weight = ptx::ex2(weight * scale_log2 - shift_of(max[m][i % 4 / 2]));
        sums[m][i % 4 / 2] += weight;
      }
    }
    pack_weights<T>(weights[step], s, step);
#pragma unroll
    for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {  // rows of eight first, then the odd chunk
        const std::uint32_t chunk = Layout::advance(target, 2 * step) ^ (i / 2 << 4);
        ptx::store_shared_4(chunk + (m * 16 + i % 2 * 8) * Layout::kRowBytes, weights[step][m][i]);
      }
    }
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

// O += P V over one slice of keys, for the columns of V from the lane's address `v_lane` on.
template <class T, int kKeys, class Values, int kWidth, class Operand>
__device__ __forceinline__ void add_weighted(Accumulators<kMTiles, kWidth>& o,
                                             const Operand& operand, std::uint32_t v_lane) {
#pragma unroll
  for (int k = 0; k < kKeys / 16; ++k) {
    std::uint32_t a[kMTiles][4];
    operand(a, k);
#pragma unroll
    for (int n = 0; n < kWidth / 8; n += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4_trans(b, Values::advance(v_lane, n) + k * 16 * Values::kRowBytes);
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
        ptx::mma_m16n8k16<T>(o.at[m][n], a[m], b[0], b[1]);
        ptx::mma_m16n8k16<T>(o.at[m][n + 1], a[m], b[2], b[3]);
      }
    }
  }
}

// A lane's two columns in each of two neighbouring blocks of accumulators become four columns of
// one block: lanes of even number get the first block's.
__device__ __forceinline__ float4 join_columns(const float (&first)[4], const float (&second)[4],
                                               int r, int lane) {
  const bool odd = (lane & 1) != 0;
  const float x = __shfl_xor_sync(0xFFFFFFFFU, odd ? first[2 * r] : second[2 * r], 1);
  const float y = __shfl_xor_sync(0xFFFFFFFFU, odd ? first[2 * r + 1] : second[2 * r + 1], 1);
  return odd ? make_float4(x, y, second[2 * r], second[2 * r + 1])
             : make_float4(first[2 * r], first[2 * r + 1], x, y);
}

template <class T, int kHeaddim, bool kLarge>
__global__ void __launch_bounds__(Config<kHeaddim, kLarge>::kThreads, 1)
    rf_fa1_fwd(const __grid_constant__ ForwardArguments args, Statistics* all_statistics) {
  using C = Config<kHeaddim, kLarge>;
  constexpr int kSliceKeys = C::kSliceKeys;
  extern __shared__ __align__(128) unsigned char smem[];
  using Weights = TileLayout<C::kBlockN>;
  using Values = TileLayout<kHeaddim>;
  const std::uint32_t k_tile = ptx::smem_address(smem);
  const std::uint32_t v_tile = k_tile + C::kKeyBytes;
  Group<C> group(smem + 2 * C::kKeyBytes);

  const auto head_index = static_cast<int>(blockIdx.x);
  const int query_blocks = (args.seqlen_q + kBlockM - 1) / kBlockM;
  const int batch_index = uniform(head_index / args.heads_q);
  const Head<T> head = head_of<T>(args, batch_index, head_index - batch_index * args.heads_q);
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
  const auto load_query = [&](int query_block, bool first_visit, int stage) {
    // With two stages this happens amid the products, where registers are short for addresses.
    const int thread = C::kQueryStages == 2 ? ptx::fresh(group.thread) : group.thread;
    const int first_row = query_block * kBlockM;
    load_tile<T, kHeaddim, kBlockM, C::kGroupThreads>(
        group.q_tiles + stage * C::kQueryBytes, head.q + first_row * head.q_stride, head.q_stride,
        args.seqlen_q - first_row, args.headdim, thread);
    constexpr int kAtOnce = 16 / sizeof(Statistics);
    if (!first_visit && thread < kBlockM / kAtOnce) {
      const int row = thread * kAtOnce;
      ptx::cp_async_16(ptx::smem_address(group.statistics + stage * kBlockM + row),
                       stored + first_row + row, true);
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
      load_tile<T, kHeaddim, C::kBlockN, C::kLoaders>(v_tile, head.v + first_key * head.v_stride,
                                                      head.v_stride, keys, args.headdim_v);
    }
    ptx::cp_async_commit();
    // The group's first query block from `begin` on.
    const int first = begin + (group.index + C::kGroups - begin % C::kGroups) % C::kGroups;
    const auto load_if_any = [&](int query_block, int stage) {
      if (query_block >= end) return;
      load_query(query_block, key_block == static_cast<int>(blocks_of(query_block).begin), stage);
    };
    for (int i = 0; i < C::kQueryStages; ++i) load_if_any(first + i * C::kGroups, i);
    ptx::cp_async_wait<0>();
    __syncthreads();

    int stage = 0;
#pragma unroll 1
    for (int query_block = first; query_block < end; query_block += C::kGroups) {
      const int first_row = query_block * kBlockM;
      const KeyBlocks blocks = blocks_of(query_block);
      const bool first_visit = key_block == static_cast<int>(blocks.begin);
      const bool last_visit = key_block == static_cast<int>(blocks.end) - 1;
      group.refresh();
      Accumulators<kMTiles, kSliceKeys> s;
      scores<T, kHeaddim>(s, group.q_tiles + stage * C::kQueryBytes,
                          k_tile + group.warp * kTileBytes<kSliceKeys, kHeaddim>, group.lane);
      const RowBand visible = row_band(args.band, first_row, kBlockM, args.seqlen_kv);
      if (!sees_all(visible, kBlockM, first_key, C::kBlockN, args.seqlen_kv)) {
        apply_mask(s, visible, args.seqlen_kv, group.row(0, 0),
                   first_key + group.warp * kSliceKeys + 2 * (group.lane & 3));
      }
      float of_slice[kMTiles][2];
      row_maxima(of_slice, s);
      group.share(group.maxima, of_slice);
      group.sync();  // the maxima of all slices are there; every warp is done with Q and the last P

      float new_max[kMTiles][2];
      float keep[kMTiles][2];  // first the old sum, rescaled to the new maximum
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int row = group.row(m, r);
          const Statistics old =
              first_visit ? Statistics{-INFINITY, 0.0F} : group.statistics[stage * kBlockM + row];
          new_max[m][r] = fmaxf(old.max, largest(group.maxima[row]) * args.scale_log2);
          keep[m][r] = old.sum * ptx::ex2(old.max - shift_of(new_max[m][r]));
        }
      }
      if constexpr (C::kQueryStages == 1) {
        group.sync();  // the maxima and the statistics have been read
        load_if_any(query_block + C::kGroups, 0);
      }

      std::uint32_t weights[kSliceKeys / 16][kMTiles][4];
      exponentiate<T>(weights, of_slice, s, new_max, args.scale_log2, group);
      group.share(group.sums, of_slice);

      // The warp's columns of O, 16 at a time: a lane has four of them in each of its rows.
      constexpr int kParts = C::kOwnColumns / 16;
      const auto column = [&](int part) {
        const int piece = (group.lane & 1) * 2 + ((group.lane >> 1) & 1);
        return group.warp * C::kOwnColumns + part * 16 + piece * 4;
      };
      const auto exists = [&](int m, int r, int part) {
        return first_row + group.row(m, r) < args.seqlen_q && column(part) < args.headdim_v;
      };
      const auto offset = [&](int m, int r, int part) {
        return o_offset + (first_row + group.row(m, r)) * head.o_stride + column(part);
      };
      float4 old_o[kMTiles][2][kParts];
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
#pragma unroll
          for (int part = 0; part < kParts; ++part) {
            old_o[m][r][part] = make_float4(0.0F, 0.0F, 0.0F, 0.0F);
            if (!first_visit && exists(m, r, part)) {
              old_o[m][r][part] =
                  __ldcg(reinterpret_cast<const float4*>(stored_o + offset(m, r, part)));
            }
          }
        }
      }

      // The warp's own keys first, from registers: so it need not wait for the others' at once.
      Accumulators<kMTiles, C::kOwnColumns> o;
      o.clear();
      const auto add_slice = [&](int slice, const auto& operand) {
        add_weighted<T, kSliceKeys, Values>(
            o, operand,
            v_tile + slice * kTileBytes<kSliceKeys, kHeaddim> +
                Values::rows_first(group.lane, group.warp * (C::kOwnColumns / 8)));
      };
      add_slice(group.warp, [&](std::uint32_t(&a)[kMTiles][4], int step) {
#pragma unroll
        for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
          for (int j = 0; j < 4; ++j) a[m][j] = weights[step][m][j];
        }
      });
      if constexpr (C::kQueryStages == 2) ptx::cp_async_wait<0>();
      group.sync();  // P is there, and the sums of all slices; of two stages, the next Q
      if constexpr (C::kQueryStages == 2) load_if_any(query_block + 2 * C::kGroups, stage);
#pragma unroll
      for (int i = 1; i < kSlices; ++i) {
        const int slice = (group.warp + i) % kSlices;
        const std::uint32_t p_lane = Weights::advance(
            group.p_tile + Weights::rows_first(group.lane, 0), slice * (kSliceKeys / 8));
        add_slice(slice, [&](std::uint32_t(&a)[kMTiles][4], int step) {
#pragma unroll
          for (int m = 0; m < kMTiles; ++m) {
            ptx::ldmatrix_x4(a[m],
                             Weights::advance(p_lane, 2 * step) + m * 16 * Weights::kRowBytes);
          }
        });
      }

      group.refresh();
#pragma unroll
      for (int m = 0; m < kMTiles; ++m) {
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          const int row = group.row(m, r);
          const float4 sums = group.sums[row];
          const float sum = keep[m][r] + (sums.x + sums.y + sums.z + sums.w);
          const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
          if (group.warp == 0 && (group.lane & 3) == 0) {
            if (!last_visit) {
              stored[first_row + row] = {new_max[m][r], sum};
            } else if (first_row + row < args.seqlen_q) {
              head.lse[first_row + row] =
                  sum == 0.0F ? -INFINITY : new_max[m][r] * std::numbers::ln2_v<float> + logf(sum);
            }
          }
          const float keep_old = keep[m][r] * inverse;
#pragma unroll
          for (int part = 0; part < kParts; ++part) {
            const float4 old = old_o[m][r][part];
            float4 value = join_columns(o.at[m][2 * part], o.at[m][2 * part + 1], r, group.lane);
            value.x = old.x * keep_old + value.x * inverse;
            value.y = old.y * keep_old + value.y * inverse;
            value.z = old.z * keep_old + value.z * inverse;
            value.w = old.w * keep_old + value.w * inverse;
            if (!exists(m, r, part)) continue;
            if (last_visit) {
              *reinterpret_cast<uint2*>(static_cast<T*>(args.tensors.o) + offset(m, r, part)) =
                  make_uint2(pack<T>(value.x, value.y), pack<T>(value.z, value.w));
            } else {
              __stcg(reinterpret_cast<float4*>(stored_o + offset(m, r, part)), value);
            }
          }
        }
      }
      if constexpr (C::kQueryStages == 1) {
        ptx::cp_async_wait<0>();
        group.sync();  // the next Q has arrived; the sums have been read
      } else {
        stage ^= 1;
      }
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
