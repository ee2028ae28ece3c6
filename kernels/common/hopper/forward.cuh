// Forward attention on Hopper: a producer warp that copies tiles of Q, K and V to shared memory (TMA)
// and two to four warpgroups that compute (wgmma), 64 query rows each. After Shah et al.,
// "FlashAttention-3" (arXiv 2407.08608), sections 3.1 and 3.2.
//
// CTAs are persistent: one an SM, which takes query tiles from a counter until none is left. While a
// tile's last steps run, the next tile's Q is loaded into a second slot. In each step a warpgroup issues
// the scores of a key block together with P V of the block before, and makes weights of the scores
// while P V runs.
//
// Families differ in their Softmax alone. It holds, in rows.max and rows.sum, a thread's two rows and
//   kScale             weights are 2^(score - max) / kScale
//   kKeepsKeys         it may ask for the scores again after it has made weights of them
//   exact(s, ...)      weights of a block after the true maximum, for masked blocks and a row's first
//   fast(s, again)     weights of a block that all rows see, whatever way the family has; `again`
//                      makes scores of them once more
//   moved, factor[2]   whether, and by what, O and what was summed before is to be multiplied
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cmath>
#include <numbers>
#include <type_traits>

#include "common/hopper/arguments.cuh"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/special.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/warpgroup.cuh"
#include "common/ptx/wgmma.cuh"

namespace rooflash::hopper {

template <class T>
constexpr ptx::WgmmaType kWgmmaType =
    std::is_same_v<T, __half> ? ptx::WgmmaType::fp16 : ptx::WgmmaType::bf16;

constexpr int kRowBytes = 128;      // of a tile's column of 64 elements
constexpr int kWarpgroupRows = 64;  // queries of a warpgroup

// Addresses of everything in shared memory.
template <Config kConfig>
struct Smem {
  std::uint32_t base;

  __device__ __forceinline__ explicit Smem(const unsigned char* raw)
      : base((ptx::smem_address(raw) + 1023U) & ~1023U) {}
  // Rows of one warpgroup are together: its columns, one after another.
  __device__ __forceinline__ std::uint32_t q(int slot, int warpgroup) const {
    return base + static_cast<std::uint32_t>(slot * kConfig.q_bytes() +
                                             warpgroup * (kConfig.q_bytes() / kConfig.consumers));
  }
  __device__ __forceinline__ std::uint32_t k(int stage) const {
    return base + static_cast<std::uint32_t>(kConfig.q_slots() * kConfig.q_bytes() +
                                             stage * kConfig.kv_bytes());
  }
  __device__ __forceinline__ std::uint32_t v(int stage) const { return k(kConfig.stages + stage); }
  __device__ __forceinline__ std::uint32_t barrier(int index) const {
    return k(2 * kConfig.stages) + static_cast<std::uint32_t>(8 * index);
  }
  __device__ __forceinline__ std::uint32_t q_full(int slot) const { return barrier(slot); }
  __device__ __forceinline__ std::uint32_t q_empty(int slot) const { return barrier(2 + slot); }
  __device__ __forceinline__ std::uint32_t k_full(int stage) const { return barrier(4 + stage); }
  __device__ __forceinline__ std::uint32_t k_empty(int stage) const {
    return barrier(4 + kConfig.stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v_full(int stage) const {
    return barrier(4 + 2 * kConfig.stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v_empty(int stage) const {
    return barrier(4 + 3 * kConfig.stages + stage);
  }
  // Of the CTA's query tile number `tile`: four words about the tile, then four for each warpgroup.
  __device__ __forceinline__ std::uint32_t note(int tile, int part) const {
    return barrier(4 + 4 * kConfig.stages) +
           static_cast<std::uint32_t>((tile & 1) * 16 * (kConfig.consumers + 1) + 16 * part);
  }
  static_assert(8 * (4 + 4 * kConfig.stages) + 2 * 16 * (kConfig.consumers + 1) <= 512);

  __device__ __forceinline__ void init() const {
    constexpr int kWarps = 4 * kConfig.consumers;
    for (int slot = 0; slot < kConfig.q_slots(); ++slot) {
      ptx::mbarrier_init(q_full(slot), 1);
      ptx::mbarrier_init(q_empty(slot), kWarps);
    }
    for (int stage = 0; stage < kConfig.stages; ++stage) {
      ptx::mbarrier_init(k_full(stage), 1);
      ptx::mbarrier_init(v_full(stage), 1);
      ptx::mbarrier_init(k_empty(stage), kWarps);
      ptx::mbarrier_init(v_empty(stage), kWarps);
    }
    ptx::mbarrier_init_fence();
  }
};

// The buffer that use number `count` of a ring of kSize has, and the parity of its phase.
template <int kSize>
struct Ring {
  static_assert((kSize & (kSize - 1)) == 0);
  static __device__ __forceinline__ int at(int count) {
    return count & (kSize - 1);
  }
  static __device__ __forceinline__ std::uint32_t phase(int count) {
    return static_cast<unsigned>(count) / kSize & 1U;
  }
};

// Key blocks of `rows` rows from `first_row` on, as far as there are so many.
template <int kBlockN>
__device__ __forceinline__ BasicKeyBlocks<int> blocks_of(const Arguments& args, int first_row,
                                                         int rows) {
  return key_blocks<int>(args.band_first, args.band_last, first_row,
                         min(rows, args.problem.seqlen_q - first_row), args.problem.seqlen_kv,
                         kBlockN);
}

// ---- The producer: one thread.

template <Config kConfig>
__device__ __forceinline__ void produce(const Arguments& args, const Smem<kConfig>& smem) {
  const ForwardArguments& p = args.problem;
  const int group = p.heads_q / p.heads_kv;
  const std::uint64_t once = ptx::evict_first();
  const std::uint64_t often = ptx::evict_last();
  using Slots = Ring<kConfig.q_slots()>;
  using Stages = Ring<kConfig.stages>;
  int tiles = 0;        // of Q so far
  int keys = 0;         // stages of K so far
  int values = 0;       // and of V
  int tile = static_cast<int>(blockIdx.x);
  while (tile < args.schedule.tiles()) {
    const Work work = args.schedule.work(tile);
    // The answer takes long; it is looked at when the tile's loads are under way.
    const unsigned taken = atomicAdd(&args.counters->taken, 1U);
    const int batch = work.head / p.heads_q;
    const int head = work.head % p.heads_q;
    const int head_kv = head / group;
    const int first_row = work.query_block * kConfig.block_m();
    const BasicKeyBlocks<int> stages =
        blocks_of<kConfig.stage_keys()>(args, first_row, kConfig.block_m());
    const auto load = [&](const CUtensorMap* map, std::uint32_t target, std::uint32_t full,
                          std::uint32_t empty, std::uint32_t phase, int stage) {
      ptx::mbarrier_wait(empty, phase ^ 1U);
      ptx::mbarrier_arrive_expect(full, kConfig.kv_bytes());
#pragma unroll
      for (int column = 0; column < kConfig.columns(); ++column) {
        ptx::tma_load(target + static_cast<std::uint32_t>(column * kConfig.stage_keys() * kRowBytes), map,
                      {64 * column, head_kv, stage * kConfig.stage_keys(), batch}, full, often);
      }
    };
    const auto load_keys = [&](int stage) {
      const int at = Stages::at(keys);
      load(&args.k, smem.k(at), smem.k_full(at), smem.k_empty(at), Stages::phase(keys), stage);
      keys = ptx::fresh(keys + 1);
    };
    const auto load_values = [&](int stage) {
      const int at = Stages::at(values);
      load(&args.v, smem.v(at), smem.v_full(at), smem.v_empty(at), Stages::phase(values), stage);
      values = ptx::fresh(values + 1);
    };

    if (stages.begin < stages.end) load_keys(stages.end - 1);
    const int slot = Slots::at(tiles);
    ptx::mbarrier_wait(smem.q_empty(slot), Slots::phase(tiles) ^ 1U);
#pragma unroll
    for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
#pragma unroll
      for (int column = 0; column < kConfig.columns(); ++column) {
        ptx::tma_load(smem.q(slot, warpgroup) +
                          static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes),
                      &args.q, {64 * column, head, first_row + warpgroup * kWarpgroupRows, batch},
                      smem.q_full(slot), once);
      }
    }
    ptx::store_shared_16(smem.note(tiles, 0), {work.head, first_row, stages.begin, stages.end});
#pragma unroll 1
    for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
      const int row = first_row + warpgroup * kWarpgroupRows;
      BasicKeyBlocks<int> own{};
      if (row < p.seqlen_q) own = blocks_of<kConfig.block_n>(args, row, kWarpgroupRows);
      if (own.begin >= own.end) own.begin = own.end = stages.begin * kConfig.stage_blocks;
      ptx::store_shared_16(smem.note(tiles, 1 + warpgroup),
                           {own.begin, own.end, own.whole_begin, own.whole_end});
    }
    ptx::mbarrier_arrive_expect(smem.q_full(slot), kConfig.q_bytes());
    ++tiles;
#pragma unroll 1
    for (int stage = stages.end - 1; stage > stages.begin; --stage) {
      load_keys(stage - 1);
      load_values(stage);
    }
    if (stages.begin < stages.end) load_values(stages.begin);
    tile = static_cast<int>(gridDim.x + taken);
  }
  const int slot = Slots::at(tiles);
  ptx::mbarrier_wait(smem.q_empty(slot), Slots::phase(tiles) ^ 1U);
  ptx::store_shared_16(smem.note(tiles, 0), {-1, 0, 0, 0});
  ptx::mbarrier_arrive(smem.q_full(slot));
  if (atomicAdd(&args.counters->done, 1U) == gridDim.x - 1) *args.counters = {0, 0};
}

// ---- The consumers: one warpgroup.

template <class T, Config kConfig>
__device__ __forceinline__ void issue_scores(Accumulators<1, kConfig.block_n>& s, std::uint64_t q,
                                             std::uint64_t k) {
#pragma unroll
  for (int step = 0; step < kConfig.headdim / 16; ++step) {
    const std::uint64_t a = q + static_cast<std::uint64_t>(step / 4 * (kWarpgroupRows * kRowBytes / 16) + step % 4 * 2);
    const std::uint64_t b = k + static_cast<std::uint64_t>(step / 4 * (kConfig.stage_keys() * kRowBytes / 16) + step % 4 * 2);
    if (step == 0) {
      ptx::wgmma_ss<kWgmmaType<T>, kConfig.block_n, false>(s.at[0], a, b);
    } else {
      ptx::wgmma_ss<kWgmmaType<T>, kConfig.block_n>(s.at[0], a, b);
    }
  }
}

template <class T, Config kConfig>
__device__ __forceinline__ void issue_weighted_sum(
    Accumulators<1, kConfig.headdim>& o, const std::uint32_t (&p)[kConfig.block_n / 16][1][4],
    std::uint64_t v) {
#pragma unroll
  for (int step = 0; step < kConfig.block_n / 16; ++step) {
    ptx::wgmma_rs<kWgmmaType<T>, kConfig.headdim>(
        o.at[0], p[step][0], v + static_cast<std::uint64_t>(step * 16 * kRowBytes / 16));
  }
}

// The scores of one warp's 16 rows once more, by mma.sync from the tiles in shared memory: `q` is the
// warp's first row, in columns of kWarpgroupRows rows.
template <class T, Config kConfig>
__device__ __forceinline__ void scores_again(Accumulators<1, kConfig.block_n>& s, std::uint32_t q,
                                             std::uint32_t k, int lane) {
  using Layout = TileLayout<64>;
  s.clear();
#pragma unroll 1
  for (int step = 0; step < kConfig.headdim / 16; ++step) {
    std::uint32_t a[4];
    const std::uint32_t column = static_cast<std::uint32_t>(step / 4);
    ptx::ldmatrix_x4(a, Layout::rows_first(lane, step % 4 * 2) + q +
                            column * (kWarpgroupRows * kRowBytes));
#pragma unroll
    for (int n = 0; n < kConfig.block_n / 8; n += 2) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, Layout::chunks_first(lane, step % 4 * 2) + k +
                              column * (kConfig.stage_keys() * kRowBytes) +
                              static_cast<std::uint32_t>(n * 8 * kRowBytes));
      ptx::mma_m16n8k16<T>(s.at[0][n], a, b[0], b[1]);
      ptx::mma_m16n8k16<T>(s.at[0][n + 1], a, b[2], b[3]);
    }
  }
}

// The warp's 16 rows of O as T into shared memory, in columns of kWarpgroupRows rows from `target` on.
template <class T, int kWidth>
__device__ __forceinline__ void stage_rows(const Accumulators<1, kWidth>& o, std::uint32_t target,
                                           int lane) {
#pragma unroll
  for (int n = 0; n < kWidth / 8; n += 2) {
    std::uint32_t packed[1][4];
    pack_weights<T>(packed, o, n / 2);
    ptx::stmatrix_x4(target + static_cast<std::uint32_t>(n / 8 * kWarpgroupRows * kRowBytes) +
                         TileLayout<64>::rows_first(lane, n % 8),
                     packed[0]);
  }
}

// The warp's rows of O as T straight from registers: the four lanes of a row change parts among
// themselves until each has 16 neighbouring bytes of every 64.
template <class T, int kWidth>
__device__ __forceinline__ void store_rows_from_registers(const Accumulators<1, kWidth>& o, T* target,
                                                          std::int64_t stride, int rows, int columns,
                                                          int lane) {
  const int quad = lane & 3;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = r * 8 + (lane >> 2);
#pragma unroll
    for (int n = 0; n < kWidth / 8; n += 4) {
      std::uint32_t mine[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        mine[i] = pack<T>(o.at[0][n + i][2 * r], o.at[0][n + i][2 * r + 1]);
      }
      // A 4 x 4 transposition in two exchanges: lane t gets all of block t.
      const bool odd = (quad & 1) != 0;
      const bool high = (quad & 2) != 0;
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const std::uint32_t got =
            __shfl_xor_sync(0xFFFFFFFFU, odd ? mine[i] : mine[i + 1], 1);
        if (odd) {
          mine[i] = got;
        } else {
          mine[i + 1] = got;
        }
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t got =
            __shfl_xor_sync(0xFFFFFFFFU, high ? mine[i] : mine[i + 2], 2);
        if (high) {
          mine[i] = got;
        } else {
          mine[i + 2] = got;
        }
      }
      const int column = (n + quad) * 8;
      if (row < rows && column < columns) {
        *reinterpret_cast<uint4*>(target + row * stride + column) =
            make_uint4(mine[0], mine[1], mine[2], mine[3]);
      }
    }
  }
}

template <class T, Config kConfig, class Softmax>
__device__ __forceinline__ void consume(const Arguments& args, const Smem<kConfig>& smem) {
  constexpr int kBlockN = kConfig.block_n;
  const ForwardArguments& p = args.problem;
  const int warpgroup =
      ptx::uniform(static_cast<int>(threadIdx.x) / 128) - 1;
  const int warp = static_cast<int>(threadIdx.x) / 32 % 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const auto release = [&](std::uint32_t barrier) {
    if (lane == 0) ptx::mbarrier_arrive(barrier);
  };
  // The token of the tensor cores, handed from one of two warpgroups to the other.
  const auto take_turn = [&] {
    if constexpr (kConfig.ping_pong) ptx::barrier_sync(1 + warpgroup, 256);
  };
  const auto end_turn = [&] {
    if constexpr (kConfig.ping_pong) ptx::barrier_arrive(2 - warpgroup, 256);
  };
  static_assert(!kConfig.ping_pong || (kConfig.consumers == 2 && kConfig.stage_blocks == 1));
  if (warpgroup == 1) end_turn();

  using Slots = Ring<kConfig.q_slots()>;
  using Stages = Ring<kConfig.stages>;
  int tiles = 0;  // of Q so far
  int uses = 0;   // of stages that are done with
  for (;; ++tiles) {
    const int slot = Slots::at(tiles);
    ptx::mbarrier_wait(smem.q_full(slot), Slots::phase(tiles));
    // What is not needed in every step is read again rather than kept: registers are short.
    struct About {
      int head, first_row;
      int begin, end;  // of the tile's stages
    };
    struct Own {  // key blocks that this warpgroup's rows see; possibly none
      int begin, end;
      int whole_begin, whole_end;
    };
    const auto about = [&] {
      const int4 words = ptx::load_shared_int4(smem.note(tiles, 0));
      return About{words.x, words.y + warpgroup * kWarpgroupRows, words.z, words.w};
    };
    const auto own = [&] {
      const int4 words = ptx::load_shared_int4(smem.note(tiles, 1 + warpgroup));
      return Own{words.x, words.y, words.z, words.w};
    };
    if (about().head < 0) break;
    // The copy engine has read the last tile's O: its slot may be loaded again.
    const auto release_last = [&] {
      if constexpr (!kConfig.early_release) {
        if (tiles > 0 && lane == 0) {
          ptx::tma_store_wait_read();
          ptx::mbarrier_arrive(smem.q_empty(Slots::at(tiles - 1)));
        }
      }
    };
    // Passes over stages that others work on.
    const auto skip = [&](int stages) {
#pragma unroll 1
      for (; stages > 0; --stages, ++uses) {
        for (int i = 0; i < kConfig.stage_blocks; ++i) {
          take_turn();
          end_turn();
        }
        const int at = Stages::at(uses);
        ptx::mbarrier_wait(smem.k_full(at), Stages::phase(uses));
        ptx::mbarrier_wait(smem.v_full(at), Stages::phase(uses));
        __syncwarp();
        release(smem.k_empty(at));
        release(smem.v_empty(at));
      }
    };

    Softmax softmax;
    Accumulators<1, kConfig.headdim> o;
    o.clear();
    skip(about().end - (own().end + kConfig.stage_blocks - 1) / kConfig.stage_blocks);
    int block = ptx::uniform(own().end - 1);
    if (block >= own().begin) {
      const std::uint64_t q_tile = ptx::wgmma_descriptor(ptx::uniform(smem.q(slot, warpgroup)));
      Accumulators<1, kBlockN> s;
      std::uint32_t weights[kBlockN / 16][1][4];

      const auto exact_weights = [&] {
        if (block < own().whole_begin || block >= own().whole_end) {
          apply_mask(s, row_band(p.band, about().first_row, kWarpgroupRows, p.seqlen_kv), p.seqlen_kv,
                     warp * 16 + (lane >> 2), block * kBlockN + 2 * (lane & 3));
        }
        softmax.exact(s, p.scale_log2);
      };
      // A block's rows within its stage.
      const auto offset = [&](int sub) {
        return static_cast<std::uint32_t>(sub * kBlockN * kRowBytes);
      };
      // `arrived`: the stage has been waited for before.
      const auto issue_keys = [&](int use, int sub, bool arrived) {
        const int at = Stages::at(use);
        const std::uint32_t tile = ptx::uniform(smem.k(at));
        if (!arrived) ptx::mbarrier_wait(smem.k_full(at), Stages::phase(use));
        take_turn();
        ptx::wgmma_fence();
        issue_scores<T, kConfig>(s, q_tile, ptx::wgmma_descriptor(tile + offset(sub)));
        ptx::wgmma_commit();
      };
      const auto issue_values = [&](int use, int sub, bool arrived) {
        const int at = Stages::at(use);
        if (!arrived) ptx::mbarrier_wait(smem.v_full(at), Stages::phase(use));
        const std::uint32_t tile = ptx::uniform(smem.v(at));
        ptx::wgmma_fence();
        issue_weighted_sum<T, kConfig>(
            o, weights,
            ptx::wgmma_descriptor_transposed(tile + offset(sub), kConfig.stage_keys() * kRowBytes));
        ptx::wgmma_commit();
      };
      const auto values_done = [&] {
        ptx::wgmma_wait<0>();
        ptx::pin(o.at[0]);
      };
      const auto rescale = [&] {
        if (!softmax.moved) return;
#pragma unroll
        for (int n = 0; n < kConfig.headdim / 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) o.at[0][n][i] *= softmax.factor[i / 2];
        }
      };
      const auto round_weights = [&] {
#pragma unroll
        for (int step = 0; step < kBlockN / 16; ++step) pack_weights<T>(weights[step], s, step);
      };

      constexpr int kLast = kConfig.stage_blocks - 1;  // of a stage: it comes first
      int k_use = uses;
      issue_keys(k_use, block & kLast, false);
      end_turn();
      release_last();
      ptx::wgmma_wait<0>();
      ptx::pin(s.at[0]);
      if ((block & kLast) == 0 || block == own().begin) release(smem.k_empty(Stages::at(k_use)));
      exact_weights();
      round_weights();

      // Scores of the next block, at place `sub` of its stage, and P V of the block before.
      const auto step = [&](auto exact, int sub) {
        --block;
        if (sub == kLast) ++k_use;
        const auto release_keys = [&] {
          if (sub == 0 || (exact.value && block == own().begin)) {
            __syncwarp();
            release(smem.k_empty(Stages::at(k_use)));
          }
        };
        const int sub_before = sub == kLast ? 0 : sub + 1;
        issue_keys(k_use, sub, !exact.value && sub != kLast);
        issue_values(uses, sub_before, !exact.value && sub_before != kLast);
        end_turn();
        ptx::wgmma_wait<1>();
        ptx::pin(s.at[0]);
        if constexpr (exact.value || !Softmax::kKeepsKeys) release_keys();
        if constexpr (exact.value) {
          exact_weights();
        } else {
          softmax.fast(s, p.scale_log2, [&] {
            ptx::wgmma_wait<0>();  // the registers of its weights are needed
            ptx::pin(o.at[0]);
            scores_again<T, kConfig>(s,
                                     smem.q(slot, warpgroup) +
                                         static_cast<std::uint32_t>(warp * 16 * kRowBytes),
                                     smem.k(Stages::at(k_use)) + offset(sub), lane);
          });
          if constexpr (Softmax::kKeepsKeys) release_keys();
        }
        values_done();
        if (sub_before == 0) {
          release(smem.v_empty(Stages::at(uses)));
          ++uses;
        }
        rescale();
        round_weights();
      };
      const auto next_sub = [&] { return (block - 1) & kLast; };
      // Masked blocks, and one more for rows that saw no key in them.
#pragma unroll 1
      while (block > own().begin && (block > own().whole_end || softmax.unset())) {
        step(std::true_type{}, next_sub());
      }
      // Whole stages of blocks that need no mask.
      const int whole = ptx::uniform(max(own().whole_begin, own().begin));
#pragma unroll 1
      while (block > whole && next_sub() != kLast) step(std::true_type{}, next_sub());
#pragma unroll 1
      while (block - kConfig.stage_blocks >= whole) {
#pragma unroll
        for (int sub = kLast; sub >= 0; --sub) step(std::false_type{}, sub);
      }
#pragma unroll 1
      while (block > own().begin) step(std::true_type{}, next_sub());
      if constexpr (kConfig.early_release) {
        __syncwarp();
        release(smem.q_empty(slot));
      }
      issue_values(uses, block & kLast, false);
      values_done();
      release(smem.v_empty(Stages::at(uses)));
      ++uses;
    } else {
      release_last();
      if constexpr (kConfig.early_release) {
        __syncwarp();
        release(smem.q_empty(slot));
      }
    }
    skip(own().begin / kConfig.stage_blocks - about().begin);

    // The end: O divided by the row sums, and LSE.
    const int warp_row = about().first_row + warp * 16;
    const int rows = p.seqlen_q - warp_row;
    const int head = about().head;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = softmax.rows.sum[0][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const bool empty = sum == 0.0F;
      const int row = r * 8 + (lane >> 2);
      if ((lane & 3) == 0 && row < rows) {
        p.tensors.lse[static_cast<std::int64_t>(head) * p.seqlen_q + warp_row + row] =
            empty ? -INFINITY
                  : softmax.rows.max[0][r] * std::numbers::ln2_v<float> +
                        logf(sum * Softmax::kScale);
      }
      const float inverse = empty ? 0.0F : 1.0F / sum;
#pragma unroll
      for (int n = 0; n < kConfig.headdim / 8; ++n) {
        o.at[0][n][2 * r] *= inverse;
        o.at[0][n][2 * r + 1] *= inverse;
      }
    }
    if constexpr (kConfig.early_release) {
      if (rows > 0) {
        const Head<T> at = head_of<T>(p, head);
        store_rows_from_registers(o, at.o + warp_row * at.o_stride, at.o_stride, rows,
                                  p.headdim_v, lane);
      }
    } else {
      // Over the warp's own rows of Q, which no other warp reads.
      const std::uint32_t staged =
          smem.q(slot, warpgroup) + static_cast<std::uint32_t>(warp * 16 * kRowBytes);
      if (rows > 0) {
        stage_rows<T>(o, staged, lane);
        ptx::fence_proxy_async();
      }
      __syncwarp();
      if (lane == 0 && rows > 0) {
#pragma unroll
        for (int column = 0; column < kConfig.columns(); ++column) {
          if (64 * column >= p.headdim_v) break;
          ptx::tma_store(&args.o, {64 * column, head % p.heads_q, warp_row, head / p.heads_q},
                         staged + static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes));
        }
        ptx::tma_store_commit();
      }
    }
  }
  if constexpr (!kConfig.early_release) {
    if (lane == 0) ptx::tma_store_wait_read();  // shared memory ends with the CTA
  }
  // Hands the last turn on, so that the other warpgroup is not left waiting.
  if (warpgroup == 0) take_turn();
}

// Launched with as many CTAs as SMs, at most one a tile.
template <class T, Config kConfig, class Softmax>
__device__ __forceinline__ void forward(const Arguments& args) {
  extern __shared__ unsigned char smem_raw[];
  const Smem<kConfig> smem(smem_raw);
  if (threadIdx.x == 0) {
    smem.init();
    ptx::tma_prefetch(&args.q);
    ptx::tma_prefetch(&args.k);
    ptx::tma_prefetch(&args.v);
    ptx::tma_prefetch(&args.o);
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::give_up_registers_above<kConfig.producer_registers()>();
    if (threadIdx.x == 0) produce<kConfig>(args, smem);
  } else {
    ptx::take_registers_up_to<kConfig.consumer_registers()>();
    consume<T, kConfig, Softmax>(args, smem);
  }
}

}  // namespace rooflash::hopper
