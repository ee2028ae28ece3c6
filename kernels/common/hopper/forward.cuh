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
  // What a warpgroup needs to know of the CTA's query tile number `tile`.
  __device__ __forceinline__ std::uint32_t note(int tile, int warpgroup) const {
    return barrier(4 + 4 * kConfig.stages) +
           static_cast<std::uint32_t>(((tile & 1) * kConfig.consumers + warpgroup) * kNoteBytes);
  }
  static constexpr int kNoteBytes = 48;
  static_assert(8 * (4 + 4 * kConfig.stages) + 2 * kConfig.consumers * kNoteBytes <= 768);

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

// What the producer tells a warpgroup of a query tile.
struct Place {
  int batch;
  int head;  // of the batch item; below 0: no tile is left
  int first_row;
};
struct Own {  // the key blocks that the warpgroup's rows see, possibly none
  int begin, end;
  int whole_begin, whole_end;
};
struct Skips {  // stages of the tile before and after those blocks
  int before, after;
};

__device__ __forceinline__ void write_note(std::uint32_t note, const Place& place, const Own& own,
                                           const Skips& skips) {
  ptx::store_shared_16(note, {place.batch, place.head, place.first_row, 0});
  ptx::store_shared_16(note + 16, {own.begin, own.end, own.whole_begin, own.whole_end});
  ptx::store_shared_16(note + 32, {skips.before, skips.after, 0, 0});
}
__device__ __forceinline__ Place read_place(std::uint32_t note) {
  const int4 words = ptx::load_shared_int4(note);
  return {words.x, words.y, words.z};
}
__device__ __forceinline__ Own read_own(std::uint32_t note) {
  const int4 words = ptx::load_shared_int4(note + 16);
  return {words.x, words.y, words.z, words.w};
}
__device__ __forceinline__ Skips read_skips(std::uint32_t note) {
  const int4 words = ptx::load_shared_int4(note + 32);
  return {words.x, words.y};
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
#pragma unroll 1
    for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
      constexpr int kBlocks = kConfig.stage_blocks;
      const int row = first_row + warpgroup * kWarpgroupRows;
      BasicKeyBlocks<int> own{};
      if (row < p.seqlen_q) own = blocks_of<kConfig.block_n>(args, row, kWarpgroupRows);
      if (own.begin >= own.end) own.begin = own.end = stages.begin * kBlocks;
      write_note(smem.note(tiles, warpgroup), {batch, head, row},
                 {own.begin, own.end, own.whole_begin, own.whole_end},
                 {stages.end - (own.end + kBlocks - 1) / kBlocks, own.begin / kBlocks - stages.begin});
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
  for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
    write_note(smem.note(tiles, warpgroup), {0, -1, 0}, {}, {});
  }
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

// The warp's 16 rows of O, as `pack_weights` leaves them, into shared memory, in columns of
// kWarpgroupRows rows from `target` on.
template <int kWidth>
__device__ __forceinline__ void stage_rows(const std::uint32_t (&o)[kWidth / 16][1][4],
                                           std::uint32_t target, int lane) {
#pragma unroll
  for (int k = 0; k < kWidth / 16; ++k) {
    ptx::stmatrix_x4(target + static_cast<std::uint32_t>(k / 4 * kWarpgroupRows * kRowBytes) +
                         TileLayout<64>::rows_first(lane, k % 4 * 2),
                     o[k][0]);
  }
}

// The same straight to global memory: the four lanes of a row change parts among themselves until
// each has 16 neighbouring bytes of every 64.
template <class T, int kWidth>
__device__ __forceinline__ void store_rows_from_registers(
    const std::uint32_t (&o)[kWidth / 16][1][4], T* target, std::int64_t stride, int rows,
    int columns, int lane) {
  const int quad = lane & 3;
  const bool odd = (quad & 1) != 0;
  const bool high = (quad & 2) != 0;
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const int row = r * 8 + (lane >> 2);
#pragma unroll
    for (int n = 0; n < kWidth / 8; n += 4) {
      std::uint32_t mine[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) mine[i] = o[(n + i) / 2][0][(n + i) % 2 * 2 + r];
      // A 4 x 4 transposition in two exchanges: lane t gets all of block t.
#pragma unroll
      for (int i = 0; i < 4; i += 2) {
        const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFFU, odd ? mine[i] : mine[i + 1], 1);
        mine[i] = odd ? got : mine[i];
        mine[i + 1] = odd ? mine[i + 1] : got;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const std::uint32_t got = __shfl_xor_sync(0xFFFFFFFFU, high ? mine[i] : mine[i + 2], 2);
        mine[i] = high ? got : mine[i];
        mine[i + 2] = high ? mine[i + 2] : got;
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
class Consumer {
 public:
  __device__ __forceinline__ Consumer(const Arguments& args, const Smem<kConfig>& smem)
      : args_(args),
        smem_(smem),
        warpgroup_(ptx::uniform(static_cast<int>(threadIdx.x) / 128) - 1),
        warp_(static_cast<int>(threadIdx.x) / 32 % 4),
        lane_(static_cast<int>(threadIdx.x) % 32) {}

  __device__ __forceinline__ void run() {
    if (warpgroup_ == 1) end_turn();
#pragma unroll 1
    for (; begin(); ++tile_) {
      o_.clear();
      softmax_ = Softmax();
      if (busy_) {
        // The last tile's O leaves while the first scores of this one are under way.
        q_descriptor_ =
            ptx::wgmma_descriptor(ptx::uniform(smem_.q(Slots::at(tile_), warpgroup_)));
        issue_scores(block_ & kLast, false);
        end_turn();
        store_last();
        attend();
      } else {
        store_last();
        release_query();
      }
      normalise();
      skip(read_skips(note(tile_)).after);
    }
    store_last();
    if constexpr (!kConfig.early_release) {
      if (lane_ == 0) ptx::tma_store_wait_read();  // shared memory ends with the CTA
    }
    // Takes the last turn, so that the barrier is left as it was found.
    if (warpgroup_ == 0) take_turn();
  }

 private:
  using Slots = Ring<kConfig.q_slots()>;
  using Stages = Ring<kConfig.stages>;
  static constexpr int kBlockN = kConfig.block_n;
  static constexpr int kLast = kConfig.stage_blocks - 1;  // block of a stage: it comes first
  static_assert(!kConfig.ping_pong || (kConfig.consumers == 2 && kConfig.stage_blocks == 1));

  const Arguments& args_;
  const Smem<kConfig>& smem_;
  const int warpgroup_, warp_, lane_;
  int tile_ = 0;    // number of the query tile
  int block_ = 0;   // of keys, whose scores come next or are in work
  int k_use_ = 0;   // uses of stages of K so far
  int v_use_ = 0;   // and of V
  std::uint64_t q_descriptor_;
  bool busy_ = false;  // the warpgroup's rows see keys
  Softmax softmax_;
  Accumulators<1, kBlockN> s_;
  Accumulators<1, kConfig.headdim> o_;
  std::uint32_t weights_[kBlockN / 16][1][4];
  std::uint32_t rounded_[kConfig.headdim / 16][1][4];  // O on its way out
  float lse_[2];

  // What is not needed in every step is read again rather than kept: registers are short.
  __device__ __forceinline__ std::uint32_t note(int tile) const {
    return smem_.note(tile, warpgroup_);
  }
  __device__ __forceinline__ void release(std::uint32_t barrier) const {
    if (lane_ == 0) ptx::mbarrier_arrive(barrier);
  }
  // The turn at the tensor cores, handed from one of two warpgroups to the other.
  __device__ __forceinline__ void take_turn() const {
    if constexpr (kConfig.ping_pong) ptx::barrier_sync(1 + warpgroup_, 256);
  }
  __device__ __forceinline__ void end_turn() const {
    if constexpr (kConfig.ping_pong) ptx::barrier_arrive(2 - warpgroup_, 256);
  }
  // Where the warp's 16 rows of the tile's Q begin.
  __device__ __forceinline__ std::uint32_t own_rows(int tile) const {
    return smem_.q(Slots::at(tile), warpgroup_) +
           static_cast<std::uint32_t>(warp_ * 16 * kRowBytes);
  }
  // Where a block's rows begin in its stage.
  static __device__ __forceinline__ std::uint32_t offset(int sub) {
    return static_cast<std::uint32_t>(sub * kBlockN * kRowBytes);
  }

  // Waits for the next query tile. False where none is left.
  __device__ __forceinline__ bool begin() {
    ptx::mbarrier_wait(smem_.q_full(Slots::at(tile_)), Slots::phase(tile_));
    if (ptx::uniform(read_place(note(tile_)).head) < 0) return false;
    skip(read_skips(note(tile_)).before);
    const Own own = read_own(note(tile_));
    block_ = ptx::uniform(own.end - 1);
    busy_ = block_ >= ptx::uniform(own.begin);
    return true;
  }

  // Passes over stages that others work on.
  __device__ __forceinline__ void skip(int stages) {
#pragma unroll 1
    for (stages = ptx::uniform(stages); stages > 0; --stages) {
      for (int i = 0; i < kConfig.stage_blocks; ++i) {
        take_turn();
        end_turn();
      }
      ptx::mbarrier_wait(smem_.k_full(Stages::at(k_use_)), Stages::phase(k_use_));
      ptx::mbarrier_wait(smem_.v_full(Stages::at(v_use_)), Stages::phase(v_use_));
      __syncwarp();
      release(smem_.k_empty(Stages::at(k_use_++)));
      release(smem_.v_empty(Stages::at(v_use_++)));
    }
  }

  // All blocks of the tile, after the first scores have been issued.
  __device__ __forceinline__ void attend() {
    ptx::wgmma_wait<0>();
    ptx::pin(s_.at[0]);
    release_keys(block_ & kLast);
    exact_weights();
    round_weights();
    release_last_output();
    // Masked blocks, and one more for rows that saw no key in them.
#pragma unroll 1
    while (block_ > begin_block() &&
           (block_ > read_own(note(tile_)).whole_end || softmax_.unset())) {
      step(std::true_type{}, (block_ - 1) & kLast);
    }
    // Whole stages of blocks that need no mask.
    const int whole = ptx::uniform(max(read_own(note(tile_)).whole_begin, begin_block()));
#pragma unroll 1
    while (block_ > whole && ((block_ - 1) & kLast) != kLast) {
      step(std::true_type{}, (block_ - 1) & kLast);
    }
#pragma unroll 1
    while (block_ - kConfig.stage_blocks >= whole) {
#pragma unroll
      for (int sub = kLast; sub >= 0; --sub) step(std::false_type{}, sub);
    }
#pragma unroll 1
    while (block_ > begin_block()) step(std::true_type{}, (block_ - 1) & kLast);
    release_query();
    issue_weighted_sum(block_ & kLast, false);
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    release(smem_.v_empty(Stages::at(v_use_++)));
  }

  __device__ __forceinline__ int begin_block() const {
    return ptx::uniform(read_own(note(tile_)).begin);
  }

  // Weights of the next block, at place `sub` of its stage, while P V of the block before runs.
  // `exact` says how; without it the stage is a whole one.
  template <class Exact>
  __device__ __forceinline__ void step(Exact, int sub) {
    constexpr bool kExact = Exact::value;
    --block_;
    const int sub_before = sub == kLast ? 0 : sub + 1;
    issue_scores(sub, !kExact && sub != kLast);
    issue_weighted_sum(sub_before, !kExact && sub_before != kLast);
    end_turn();
    ptx::wgmma_wait<1>();
    ptx::pin(s_.at[0]);
    if constexpr (kExact) {
      release_keys(sub);
      exact_weights();
    } else {
      if constexpr (!Softmax::kKeepsKeys) release_whole_keys(sub);
      softmax_.fast(s_, args_.problem.scale_log2, [&] {
        ptx::wgmma_wait<0>();  // the registers of its weights are needed
        ptx::pin(o_.at[0]);
        scores_again<T, kConfig>(s_, own_rows(tile_), smem_.k(Stages::at(k_use_)) + offset(sub),
                                 lane_);
      });
      if constexpr (Softmax::kKeepsKeys) {
        __syncwarp();
        release_whole_keys(sub);
      }
    }
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    if (sub_before == 0) release(smem_.v_empty(Stages::at(v_use_++)));
    if (softmax_.moved) rescale();
    round_weights();
  }

  // K's stage is handed back with its last block, or with the last that this warpgroup sees.
  __device__ __forceinline__ void release_whole_keys(int sub) {
    if (sub == 0) release(smem_.k_empty(Stages::at(k_use_++)));
  }
  __device__ __forceinline__ void release_keys(int sub) {
    if (sub == 0 || block_ == begin_block()) release(smem_.k_empty(Stages::at(k_use_++)));
  }

  // `arrived`: the stage has been waited for before.
  __device__ __forceinline__ void issue_scores(int sub, bool arrived) {
    const int stage = Stages::at(k_use_);
    const std::uint32_t k = ptx::uniform(smem_.k(stage));
    if (!arrived) ptx::mbarrier_wait(smem_.k_full(stage), Stages::phase(k_use_));
    take_turn();
    ptx::wgmma_fence();
    hopper::issue_scores<T, kConfig>(s_, q_descriptor_,
                                     ptx::wgmma_descriptor(k + offset(sub)));
    ptx::wgmma_commit();
  }
  __device__ __forceinline__ void issue_weighted_sum(int sub, bool arrived) {
    const int stage = Stages::at(v_use_);
    if (!arrived) ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(v_use_));
    const std::uint32_t v = ptx::uniform(smem_.v(stage));
    ptx::wgmma_fence();
    hopper::issue_weighted_sum<T, kConfig>(
        o_, weights_,
        ptx::wgmma_descriptor_transposed(v + offset(sub), kConfig.stage_keys() * kRowBytes));
    ptx::wgmma_commit();
  }

  __device__ __forceinline__ void exact_weights() {
    const Own own = read_own(note(tile_));
    if (block_ < own.whole_begin || block_ >= own.whole_end) {
      const int first_row = read_place(note(tile_)).first_row;
      const RowBand band{first_row + args_.band_first, first_row + args_.band_last + 1};
      apply_mask(s_, band, args_.problem.seqlen_kv, warp_ * 16 + (lane_ >> 2),
                 block_ * kBlockN + 2 * (lane_ & 3));
    }
    softmax_.exact(s_, args_.problem.scale_log2);
  }
  __device__ __forceinline__ void round_weights() {
#pragma unroll
    for (int k = 0; k < kBlockN / 16; ++k) pack_weights<T>(weights_[k], s_, k);
  }
  __device__ __forceinline__ void rescale() {
#pragma unroll
    for (int n = 0; n < kConfig.headdim / 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) o_.at[0][n][i] *= softmax_.factor[i / 2];
    }
  }

  // Q's last product is done: with one slot it is loaded anew at once.
  __device__ __forceinline__ void release_query() {
    if constexpr (kConfig.early_release) {
      __syncwarp();
      release(smem_.q_empty(0));
    } else if (!busy_) {
      release_last_output();
    }
  }
  // With two, when the copy engine has read the O that was laid over it.
  __device__ __forceinline__ void release_last_output() {
    if constexpr (!kConfig.early_release) {
      if (tile_ > 0 && lane_ == 0) {
        ptx::tma_store_wait_read();
        ptx::mbarrier_arrive(smem_.q_empty(Slots::at(tile_ - 1)));
      }
    }
  }

  // O divided by the row sums, and LSE.
  __device__ __forceinline__ void normalise() {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = softmax_.rows.sum[0][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const bool empty = sum == 0.0F;
      lse_[r] = empty ? -INFINITY
                      : (softmax_.rows.max[0][r] + __log2f(sum * Softmax::kScale)) *
                            std::numbers::ln2_v<float>;
      const float inverse = empty ? 0.0F : __fdividef(1.0F, sum);
#pragma unroll
      for (int n = 0; n < kConfig.headdim / 8; ++n) {
        o_.at[0][n][2 * r] *= inverse;
        o_.at[0][n][2 * r + 1] *= inverse;
      }
    }
#pragma unroll
    for (int k = 0; k < kConfig.headdim / 16; ++k) pack_weights<T>(rounded_[k], o_, k);
  }

  // Writes O and LSE of the tile before.
  __device__ __forceinline__ void store_last() {
    if (tile_ == 0) return;
    const ForwardArguments& p = args_.problem;
    const Place place = read_place(note(tile_ - 1));
    const int warp_row = place.first_row + warp_ * 16;
    const int rows = p.seqlen_q - warp_row;
    const std::int64_t head = static_cast<std::int64_t>(place.batch) * p.heads_q + place.head;
    if constexpr (kConfig.early_release) {
      const Head<T> at = head_of<T>(p, static_cast<int>(head));
      store_rows_from_registers<T, kConfig.headdim>(rounded_, at.o + warp_row * at.o_stride,
                                                    at.o_stride, rows, p.headdim_v, lane_);
    } else {
      // Over the warp's own rows of Q, which no other warp reads.
      const std::uint32_t staged = own_rows(tile_ - 1);
      stage_rows<kConfig.headdim>(rounded_, staged, lane_);
      ptx::fence_proxy_async();
      __syncwarp();
      if (lane_ == 0 && rows > 0) {
#pragma unroll
        for (int column = 0; column < kConfig.columns(); ++column) {
          if (64 * column >= p.headdim_v) break;
          ptx::tma_store(&args_.o, {64 * column, place.head, warp_row, place.batch},
                         staged + static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes));
        }
        ptx::tma_store_commit();
      }
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const int row = r * 8 + (lane_ >> 2);
      if ((lane_ & 3) == 0 && row < rows) p.tensors.lse[head * p.seqlen_q + warp_row + row] = lse_[r];
    }
  }
};

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
    Consumer<T, kConfig, Softmax>(args, smem).run();
  }
}

}  // namespace rooflash::hopper
