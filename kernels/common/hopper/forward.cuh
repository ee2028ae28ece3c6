// Forward attention on Hopper, after Shah et al., "FlashAttention-3" (arXiv 2407.08608),
// sections 3.1 and 3.2. CTAs are persistent, one an SM, and take query tiles from a counter until
// none is left. In a CTA, two to four warpgroups compute (wgmma), 64 query rows each; of one more,
// three threads work, and all wait for one another at mbarriers:
//   plan        takes tiles, writes notes on them, loads Q
//   load        loads K and V, key blocks from last to first, through rings of stages
//   compute     the Consumers
//   store       writes O, which the consumers leave where Q was
// In each step a warpgroup issues the scores of a key block together with P V of the block before,
// and makes weights of the scores while P V runs.
//
// Families differ in their Softmax alone: a RowSoftmax (softmax.cuh) that adds
//   kKeepsKeys      whether it may ask for scores again after it has made weights of them
//   fast(s, again)  weights of a block that all rows see, also of rows that saw no key before;
//                   `again(rows)` makes scores of these rows once more
// The others, masked blocks and a tile's first, get their weights from RowSoftmax::exact.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <cmath>
#include <numbers>
#include <type_traits>

#include "common/hopper/arguments.cuh"
#include "common/mma_tile.cuh"
#include "common/online_softmax.cuh"
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
  // With early release: a warp's part of O on its way out.
  __device__ __forceinline__ std::uint32_t o(int warpgroup, int warp) const {
    constexpr int kWarpBytes = 16 * 2 * kRowBytes;
    return k(2 * kConfig.stages) + static_cast<std::uint32_t>((warpgroup * 4 + warp) * kWarpBytes);
  }
  __device__ __forceinline__ std::uint32_t barrier(int index) const {
    return k(2 * kConfig.stages) + static_cast<std::uint32_t>(kConfig.o_bytes() + 8 * index);
  }
  __device__ __forceinline__ std::uint32_t q_full(int slot) const { return barrier(slot); }
  __device__ __forceinline__ std::uint32_t q_empty(int slot) const { return barrier(2 + slot); }
  __device__ __forceinline__ std::uint32_t o_full(int slot) const { return barrier(4 + slot); }
  __device__ __forceinline__ std::uint32_t noted(int tile) const {
    return barrier(6 + tile % kNotes);
  }
  __device__ __forceinline__ std::uint32_t k_full(int stage) const { return barrier(10 + stage); }
  __device__ __forceinline__ std::uint32_t k_empty(int stage) const {
    return barrier(10 + kConfig.stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v_full(int stage) const {
    return barrier(10 + 2 * kConfig.stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v_empty(int stage) const {
    return barrier(10 + 3 * kConfig.stages + stage);
  }
  // The notes on the CTA's query tile number `tile`: one for all, then one for each warpgroup.
  __device__ __forceinline__ std::uint32_t note(int tile) const {
    return barrier(10 + 4 * kConfig.stages) +
           static_cast<std::uint32_t>(tile % kNotes * (16 + kConfig.consumers * kNoteBytes));
  }
  __device__ __forceinline__ std::uint32_t note(int tile, int warpgroup) const {
    return note(tile) + static_cast<std::uint32_t>(16 + warpgroup * kNoteBytes);
  }
  // That are kept. A note is written when its tile is taken, and consumers have then begun the tile
  // before; they read the notes of that one and of the one before it.
  static constexpr int kNotes = 4;
  static constexpr int kNoteBytes = 32;
  static_assert(8 * (10 + 4 * kConfig.stages) + kNotes * (16 + kConfig.consumers * kNoteBytes) <=
                1024);

  __device__ __forceinline__ void init() const {
    constexpr int kWarps = 4 * kConfig.consumers;
    for (int slot = 0; slot < kConfig.q_slots(); ++slot) {
      ptx::mbarrier_init(q_full(slot), 1);
      ptx::mbarrier_init(q_empty(slot), kConfig.early_release ? kWarps : 1);
      ptx::mbarrier_init(o_full(slot), kWarps);
    }
    for (int tile = 0; tile < kNotes; ++tile) ptx::mbarrier_init(noted(tile), 1);
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
  static __device__ __forceinline__ int at(int count) { return count & (kSize - 1); }
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

// What is noted on a query tile.
struct Place {
  int batch;  // below 0: no tile is left
  int head;
  int first_row;
};
// The stages of K and V that some row of the tile sees.
struct Range {
  int begin, end;
};
// The key blocks that a warpgroup's rows see, possibly none.
struct Own {
  int begin, end;
  int whole_begin, whole_end;  // of them, those that all rows see
};

// ---- plan: one thread

template <Config kConfig>
__device__ __forceinline__ void write_notes(const Arguments& args, const Smem<kConfig>& smem,
                                            int tile, const Place& place) {
  const int seqlen_q = args.problem.seqlen_q;
  const BasicKeyBlocks<int> stages =
      blocks_of<kConfig.stage_keys()>(args, place.first_row, kConfig.block_m());
  ptx::store_shared_16(smem.note(tile), {place.batch, place.head, stages.begin, stages.end});
#pragma unroll 1
  for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
    const int row = place.first_row + warpgroup * kWarpgroupRows;
    BasicKeyBlocks<int> own{};
    if (row < seqlen_q) own = blocks_of<kConfig.block_n>(args, row, kWarpgroupRows);
    if (own.begin >= own.end) own.begin = own.end = stages.begin * kConfig.stage_blocks;
    ptx::store_shared_16(smem.note(tile, warpgroup), {place.batch, place.head, row, 0});
    ptx::store_shared_16(smem.note(tile, warpgroup) + 16,
                         {own.begin, own.end, own.whole_begin, own.whole_end});
  }
}

template <Config kConfig>
__device__ __forceinline__ void plan(const Arguments& args, const Smem<kConfig>& smem) {
  const ForwardArguments& p = args.problem;
  const std::uint64_t once = ptx::evict_first();
  using Slots = Ring<kConfig.q_slots()>;
  int count = 0;  // of tiles so far
  const auto wait_for_slot = [&] {
    ptx::mbarrier_wait(smem.q_empty(Slots::at(count)), Slots::phase(count) ^ 1U);
  };
  unsigned tile = blockIdx.x;  // beyond the last it may be more than an int holds
#pragma unroll 1
  for (; tile < static_cast<unsigned>(args.schedule.tiles()); ++count) {
    const Work work = args.schedule.work(static_cast<int>(tile));
    const Place place{work.head / p.heads_q, work.head % p.heads_q,
                      work.query_block * kConfig.block_m()};
    write_notes(args, smem, count, place);
    ptx::mbarrier_arrive(smem.noted(count));
    const auto for_boxes = [&](auto visit) {
#pragma unroll
      for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
#pragma unroll
        for (int column = 0; column < kConfig.columns(); ++column) {
          visit(smem.q(Slots::at(count), warpgroup) +
                    static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes),
                ptx::Corner{64 * column, place.head, place.first_row + warpgroup * kWarpgroupRows,
                            place.batch});
        }
      }
    };
    if constexpr (kConfig.early_release) {
      for_boxes([&](std::uint32_t, ptx::Corner at) { ptx::tma_prefetch(&args.q, at); });
      wait_for_slot();
    }
    ptx::mbarrier_arrive_expect(smem.q_full(Slots::at(count)), kConfig.q_bytes());
    for_boxes([&](std::uint32_t target, ptx::Corner at) {
      ptx::tma_load(target, &args.q, at, smem.q_full(Slots::at(count)), once);
    });
    // The next tile is taken when the one before this is done with, not sooner: who is done first
    // goes on. With one slot of Q, when this one's Q is there.
    if constexpr (kConfig.early_release) {
      ptx::mbarrier_wait(smem.q_full(0), Slots::phase(count));
    } else {
      ptx::mbarrier_wait(smem.q_empty(Slots::at(count + 1)), Slots::phase(count + 1) ^ 1U);
    }
    tile = gridDim.x + atomicAdd(&args.counters->taken, 1U);
  }
  wait_for_slot();
  ptx::store_shared_16(smem.note(count), {-1, 0, 0, 0});
  for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
    ptx::store_shared_16(smem.note(count, warpgroup), {-1, 0, 0, 0});
  }
  ptx::mbarrier_arrive(smem.noted(count));
  ptx::mbarrier_arrive(smem.q_full(Slots::at(count)));
  if (atomicAdd(&args.counters->done, 1U) == gridDim.x - 1) *args.counters = {0, 0};
}

// ---- load: one thread

template <Config kConfig>
__device__ __forceinline__ void load(const Arguments& args, const Smem<kConfig>& smem) {
  const int group = args.problem.heads_q / args.problem.heads_kv;
  const std::uint64_t often = ptx::evict_last();
  using Notes = Ring<Smem<kConfig>::kNotes>;
  using Stages = Ring<kConfig.stages>;
  int keys = 0;    // stages of K so far
  int values = 0;  // and of V
#pragma unroll 1
  for (int count = 0;; ++count) {
    ptx::mbarrier_wait(smem.noted(count), Notes::phase(count));
    const int4 note = ptx::load_shared_int4(smem.note(count));
    const int batch = note.x;
    if (batch < 0) break;
    const int head_kv = note.y / group;
    const Range range{note.z, note.w};
    const auto load_stage = [&](const CUtensorMap* map, std::uint32_t target, std::uint32_t full,
                                std::uint32_t empty, std::uint32_t phase, int stage) {
      ptx::mbarrier_wait(empty, phase ^ 1U);
      ptx::mbarrier_arrive_expect(full, kConfig.kv_bytes());
#pragma unroll
      for (int column = 0; column < kConfig.columns(); ++column) {
        ptx::tma_load(
            target + static_cast<std::uint32_t>(column * kConfig.stage_keys() * kRowBytes), map,
            {64 * column, head_kv, stage * kConfig.stage_keys(), batch}, full, often);
      }
    };
    const auto load_keys = [&](int stage) {
      const int at = Stages::at(keys);
      load_stage(&args.k, smem.k(at), smem.k_full(at), smem.k_empty(at), Stages::phase(keys),
                 stage);
      keys = ptx::fresh(keys + 1);
    };
    const auto load_values = [&](int stage) {
      const int at = Stages::at(values);
      load_stage(&args.v, smem.v(at), smem.v_full(at), smem.v_empty(at), Stages::phase(values),
                 stage);
      values = ptx::fresh(values + 1);
    };
    if (range.begin < range.end) load_keys(range.end - 1);
#pragma unroll 1
    for (int stage = range.end - 1; stage >= range.begin; --stage) {
      if (stage > range.begin) load_keys(stage - 1);
      load_values(stage);
    }
  }
}

// ---- store: one thread; not with early release

template <Config kConfig>
__device__ __forceinline__ void store(const Arguments& args, const Smem<kConfig>& smem) {
  using Notes = Ring<Smem<kConfig>::kNotes>;
  using Slots = Ring<kConfig.q_slots()>;
#pragma unroll 1
  for (int count = 0;; ++count) {
    const int slot = Slots::at(count);
    ptx::mbarrier_wait(smem.noted(count), Notes::phase(count));
    const int4 note = ptx::load_shared_int4(smem.note(count, 0));
    const Place place{note.x, note.y, note.z};
    if (place.batch < 0) break;
    ptx::mbarrier_wait(smem.o_full(slot), Slots::phase(count));
#pragma unroll
    for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
#pragma unroll
      for (int column = 0; column < kConfig.columns(); ++column) {
        ptx::tma_store(
            &args.o,
            {64 * column, place.head, place.first_row + warpgroup * kWarpgroupRows, place.batch},
            smem.q(slot, warpgroup) +
                static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes));
      }
    }
    ptx::tma_store_commit();
    ptx::tma_store_wait_read();
    ptx::mbarrier_arrive(smem.q_empty(slot));
  }
}

// ---- compute: the warpgroups

template <class T, Config kConfig>
__device__ __forceinline__ void issue_scores(Accumulators<1, kConfig.block_n>& s, std::uint64_t q,
                                             std::uint64_t k) {
#pragma unroll
  for (int step = 0; step < kConfig.headdim / 16; ++step) {
    const std::uint64_t a =
        q + static_cast<std::uint64_t>(step / 4 * (kWarpgroupRows * kRowBytes / 16) + step % 4 * 2);
    const std::uint64_t b =
        k + static_cast<std::uint64_t>(step / 4 * (kConfig.stage_keys() * kRowBytes / 16) +
                                       step % 4 * 2);
    if (step == 0) {
      ptx::wgmma_ss<kWgmmaType<T>, kConfig.block_n, false>(s.at[0], a, b);
    } else {
      ptx::wgmma_ss<kWgmmaType<T>, kConfig.block_n>(s.at[0], a, b);
    }
  }
}

// The same with Q as `load_query` leaves it.
template <class T, Config kConfig>
__device__ __forceinline__ void issue_scores(Accumulators<1, kConfig.block_n>& s,
                                             const std::uint32_t (&q)[kConfig.headdim / 16][4],
                                             std::uint64_t k) {
#pragma unroll
  for (int step = 0; step < kConfig.headdim / 16; ++step) {
    const std::uint64_t b =
        k + static_cast<std::uint64_t>(step / 4 * (kConfig.stage_keys() * kRowBytes / 16) +
                                       step % 4 * 2);
    if (step == 0) {
      ptx::wgmma_rs<kWgmmaType<T>, kConfig.block_n, false, false>(s.at[0], q[step], b);
    } else {
      ptx::wgmma_rs<kWgmmaType<T>, kConfig.block_n, false>(s.at[0], q[step], b);
    }
  }
}

template <class T, Config kConfig>
__device__ __forceinline__ void issue_weighted_sum(
    Accumulators<1, kConfig.headdim>& o, const std::uint32_t (&p)[kConfig.block_n / 16][1][4],
    std::uint64_t v) {
#pragma unroll
  for (int step = 0; step < kConfig.block_n / 16; ++step) {
    ptx::wgmma_rs<kWgmmaType<T>, kConfig.headdim, true>(
        o.at[0], p[step][0], v + static_cast<std::uint64_t>(step * 16 * kRowBytes / 16));
  }
}

// The scores of a warp's 16 rows once more, by mma.sync from the tiles in shared memory, for those
// of a thread's two rows that `wanted` names; the others stay. `q` is the warp's first row, in
// columns of kWarpgroupRows rows.
template <class T, Config kConfig>
__device__ __forceinline__ void scores_again(Accumulators<1, kConfig.block_n>& s,
                                             const bool (&wanted)[2], std::uint32_t q,
                                             std::uint32_t k, int lane) {
  using Layout = TileLayout<64>;
  const std::uint32_t q_lane = q + Layout::rows_first(lane, 0);
  const std::uint32_t k_lane = k + Layout::chunks_first(lane, 0);
#pragma unroll
  for (int n = 0; n < kConfig.block_n / 8; n += 2) {
    float sum[2][4] = {};
#pragma unroll 1
    for (int step = 0; step < kConfig.headdim / 16; ++step) {
      const auto column = static_cast<std::uint32_t>(step / 4);
      std::uint32_t a[4];
      std::uint32_t b[4];
      ptx::ldmatrix_x4(
          a, Layout::advance(q_lane, step % 4 * 2) + column * (kWarpgroupRows * kRowBytes));
      ptx::ldmatrix_x4(b, Layout::advance(k_lane, step % 4 * 2) +
                              column * (kConfig.stage_keys() * kRowBytes) +
                              static_cast<std::uint32_t>(n * 8 * kRowBytes));
      ptx::mma_m16n8k16<T>(sum[0], a, b[0], b[1]);
      ptx::mma_m16n8k16<T>(sum[1], a, b[2], b[3]);
    }
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      if (wanted[i % 4 / 2]) s.at[0][n + i / 4][i % 4] = sum[i / 4][i % 4];
    }
  }
}

// One warpgroup. Its warps run the same wgmma instructions, so what they branch on around these is
// the same for all four: the geometry of the tile, never the scores. Values that a warp shares are
// kept in uniform registers (ptx::uniform): wgmma takes its descriptors from there, and would wait
// for each one to be moved.
template <class T, Config kConfig, class Softmax>
class Consumer {
 public:
  __device__ __forceinline__ Consumer(const Arguments& args, const Smem<kConfig>& smem)
      : args_(args), smem_(smem) {}

  __device__ __forceinline__ void run() {
#pragma unroll 1
    for (; begin(); ++tile_) {
      o_.clear();
      softmax_ = Softmax();
      // The last tile's O leaves while the first scores of this one are under way, but does not
      // wait for blocks that are passed over.
      const bool at_once = busy_ && before_ == 0;
      if (!at_once) {
        store_last<0>();
        store_last<1>();
        skip(before_);
      }
      if (busy_) {
        q_ = ptx::uniform(smem_.q(Slots::at(tile_), warpgroup()));
        if constexpr (kConfig.q_in_registers) load_query();
        issue_scores(uses_, block_ & kLast, false);
        if (at_once) store_last<0>();
        attend(at_once);
      } else {
        release_query();
      }
      normalise();
      const int begin = ptx::uniform(read_range().begin);
      skip(begin_block() / kConfig.stage_blocks - begin);
    }
    store_last<0>();
    store_last<1>();
    if constexpr (kConfig.early_release) {
      if (leads()) ptx::tma_store_wait_read();  // shared memory ends with the CTA
    }
  }

 private:
  using Slots = Ring<kConfig.q_slots()>;
  using Stages = Ring<kConfig.stages>;
  static constexpr int kBlockN = kConfig.block_n;
  static constexpr int kLast = kConfig.stage_blocks - 1;  // block of a stage: it comes first

  const Arguments& args_;
  const Smem<kConfig>& smem_;
  int tile_ = 0;       // number of the query tile
  int block_ = 0;      // of keys, whose scores come next or are in work
  int uses_ = 0;       // of stages that are done with, K and V
  std::uint32_t q_;    // where the warpgroup's rows of Q begin
  int before_ = 0;     // stages of the tile that come before the warpgroup's own
  bool busy_ = false;  // the warpgroup's rows see keys
  Softmax softmax_;
  Accumulators<1, kBlockN> s_;
  Accumulators<1, kConfig.headdim> o_;
  std::uint32_t weights_[kBlockN / 16][1][4];
  std::uint32_t query_[kConfig.headdim / 16][4];       // with q_in_registers
  std::uint32_t rounded_[kConfig.headdim / 16][1][4];  // O on its way out

  static __device__ __forceinline__ int warpgroup() {
    return ptx::uniform(static_cast<int>(threadIdx.x) / 128) - 1;
  }
  // Worked out anew at each use, with all that follows from them: registers are short.
  static __device__ __forceinline__ int lane() {
    return ptx::fresh(static_cast<int>(threadIdx.x)) % 32;
  }
  static __device__ __forceinline__ int warp() {
    return ptx::fresh(static_cast<int>(threadIdx.x)) / 32 % 4;
  }
  static __device__ __forceinline__ bool leads() {
    return threadIdx.x % 32 == 0;
  }
  __device__ __forceinline__ void release(std::uint32_t barrier) const {
    if (leads()) ptx::mbarrier_arrive(barrier);
  }
  // Where the warp's 16 rows of the tile's Q begin.
  __device__ __forceinline__ std::uint32_t own_rows(int tile) const {
    return smem_.q(Slots::at(tile), warpgroup()) +
           static_cast<std::uint32_t>(warp() * 16 * kRowBytes);
  }
  // Where a block's rows begin in its stage.
  static __device__ __forceinline__ std::uint32_t offset(int sub) {
    return static_cast<std::uint32_t>(sub * kBlockN * kRowBytes);
  }

  // Waits for the next query tile. False where none is left.
  __device__ __forceinline__ bool begin() {
    ptx::mbarrier_wait(smem_.q_full(Slots::at(tile_)), Slots::phase(tile_));
    const Place place = read_place(tile_);
    const Own own = read_own();
    const Range range = read_range();
    if (ptx::uniform(place.batch) < 0) return false;
    block_ = ptx::uniform(own.end - 1);
    busy_ = ptx::uniform(own.begin) <= block_;
    before_ = ptx::uniform(range.end) - (block_ + kConfig.stage_blocks) / kConfig.stage_blocks;
    return true;
  }
  __device__ __forceinline__ Place read_place(int tile) const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile, warpgroup()));
    return {words.x, words.y, words.z};
  }
  __device__ __forceinline__ Own read_own() const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile_, warpgroup()) + 16);
    return {words.x, words.y, words.z, words.w};
  }
  __device__ __forceinline__ Range read_range() const {
    const int4 words = ptx::load_shared_int4(smem_.note(tile_));
    return {words.z, words.w};
  }
  __device__ __forceinline__ int begin_block() const {
    return ptx::uniform(read_own().begin);
  }

  // Passes over stages that others work on.
  __device__ __forceinline__ void skip(int stages) {
#pragma unroll 1
    for (; stages > 0; --stages) {
      const int stage = Stages::at(uses_);
      ptx::mbarrier_wait(smem_.k_full(stage), Stages::phase(uses_));
      ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(uses_));
      __syncwarp();
      release(smem_.k_empty(stage));
      release(smem_.v_empty(stage));
      ++uses_;
    }
  }

  // All blocks of the tile, after the first scores have been issued.
  // `storing`: the last tile's O is still on its way out.
  __device__ __forceinline__ void attend(bool storing) {
    ptx::wgmma_wait<0>();
    ptx::pin(s_.at[0]);
    release_keys(uses_, block_ & kLast);
    exact_weights();
    round_weights();
    if (storing) store_last<1>();
#pragma unroll 1
    while (block_ > begin_block()) {
      // Stages of which all rows see all blocks, in one go.
      const int stages = whole_stages();
      if (stages == 0) {
        step(std::true_type{}, (block_ - 1) & kLast);
        continue;
      }
      const int end = block_ - stages * kConfig.stage_blocks;
      // The last block may have been the first of its stage that the warpgroup sees.
      if (kLast > 0) {
        ptx::mbarrier_wait(smem_.v_full(Stages::at(uses_)), Stages::phase(uses_));
      }
#pragma unroll 1
      while (block_ > end) {
#pragma unroll
        for (int sub = kLast; sub >= 0; --sub) step(std::false_type{}, sub);
      }
    }
    release_query();
    issue_weighted_sum(block_ & kLast, false);
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    release(smem_.v_empty(Stages::at(uses_++)));
  }

  // How many whole stages come next whose blocks all rows see.
  __device__ __forceinline__ int whole_stages() const {
    const Own own = read_own();
    const bool aligned = (block_ & kLast) == 0 && block_ <= own.whole_end;
    const int blocks = block_ - max(own.whole_begin, own.begin);
    return ptx::uniform(aligned && blocks > 0 ? blocks / kConfig.stage_blocks : 0);
  }

  // Weights of the next block, at place `sub` of its stage, while P V of the block before runs.
  // `exact` says how; without it the stage is a whole one.
  template <class Exact>
  __device__ __forceinline__ void step(Exact, int sub) {
    constexpr bool kExact = Exact::value;
    --block_;
    const int sub_before = sub == kLast ? 0 : sub + 1;
    // K's stage is V's or, with the first block of one, the next.
    const int use = sub == kLast ? uses_ + 1 : uses_;
    issue_scores(use, sub, !kExact && sub != kLast);
    issue_weighted_sum(sub_before, !kExact && sub_before != kLast);
    ptx::wgmma_wait<1>();
    ptx::pin(s_.at[0]);
    if constexpr (kExact) {
      release_keys(use, sub);
      exact_weights();
    } else {
      if constexpr (!Softmax::kKeepsKeys) release_whole_keys(use, sub);
      softmax_.fast(s_, args_.problem.scale_log2, [&](const bool(&rows)[2]) {
        scores_again<T, kConfig>(s_, rows, q_ + static_cast<std::uint32_t>(warp() * 16 * kRowBytes),
                                 smem_.k(Stages::at(use)) + offset(sub), lane());
      });
      if constexpr (Softmax::kKeepsKeys) {
        __syncwarp();
        release_whole_keys(use, sub);
      }
    }
    ptx::wgmma_wait<0>();
    ptx::pin(o_.at[0]);
    if (sub_before == 0) release(smem_.v_empty(Stages::at(uses_++)));
    if (softmax_.moved) rescale();
    round_weights();
  }

  // K's stage is handed back with its last block, or with the last that this warpgroup sees.
  __device__ __forceinline__ void release_whole_keys(int use, int sub) const {
    if (sub == 0) release(smem_.k_empty(Stages::at(use)));
  }
  __device__ __forceinline__ void release_keys(int use, int sub) const {
    if (sub == 0 || block_ == begin_block()) release(smem_.k_empty(Stages::at(use)));
  }

  // The warp's rows of Q as A operands.
  __device__ __forceinline__ void load_query() {
    const std::uint32_t rows = q_ + static_cast<std::uint32_t>(warp() * 16 * kRowBytes) +
                               TileLayout<64>::rows_first(lane(), 0);
#pragma unroll
    for (int k = 0; k < kConfig.headdim / 16; ++k) {
      ptx::ldmatrix_x4(query_[k],
                       TileLayout<64>::advance(rows, k % 4 * 2) +
                           static_cast<std::uint32_t>(k / 4 * kWarpgroupRows * kRowBytes));
    }
  }

  // `arrived`: the stage has been waited for before.
  __device__ __forceinline__ void issue_scores(int use, int sub, bool arrived) {
    const int stage = Stages::at(use);
    const std::uint32_t k = ptx::uniform(smem_.k(stage));
    if (!arrived) ptx::mbarrier_wait(smem_.k_full(stage), Stages::phase(use));
    ptx::wgmma_fence();
    if constexpr (kConfig.q_in_registers) {
      hopper::issue_scores<T, kConfig>(s_, query_, ptx::wgmma_descriptor(k + offset(sub)));
    } else {
      hopper::issue_scores<T, kConfig>(s_, ptx::wgmma_descriptor(q_),
                                       ptx::wgmma_descriptor(k + offset(sub)));
    }
    ptx::wgmma_commit();
  }
  __device__ __forceinline__ void issue_weighted_sum(int sub, bool arrived) {
    const int stage = Stages::at(uses_);
    if (!arrived) ptx::mbarrier_wait(smem_.v_full(stage), Stages::phase(uses_));
    const std::uint32_t v = ptx::uniform(smem_.v(stage));
    ptx::wgmma_fence();
    hopper::issue_weighted_sum<T, kConfig>(
        o_, weights_,
        ptx::wgmma_descriptor_transposed(v + offset(sub), kConfig.stage_keys() * kRowBytes));
    ptx::wgmma_commit();
  }

  __device__ __forceinline__ void exact_weights() {
    const Own own = read_own();
    if (block_ < own.whole_begin || block_ >= own.whole_end) {
      const int first_row = read_place(tile_).first_row;
      const RowBand band{first_row + args_.band_first, first_row + args_.band_last + 1};
      apply_mask(s_, band, args_.problem.seqlen_kv, warp() * 16 + (lane() >> 2),
                 block_ * kBlockN + 2 * (lane() & 3));
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
    }
  }

  // O divided by the row sums, and LSE.
  __device__ __forceinline__ void normalise() {
    const ForwardArguments& p = args_.problem;
    const Place place = read_place(tile_);
    const std::int64_t head = static_cast<std::int64_t>(place.batch) * p.heads_q + place.head;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float sum = softmax_.rows.sum[0][r];
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 1);
      sum += __shfl_xor_sync(0xFFFFFFFFU, sum, 2);
      const int row = place.first_row + warp() * 16 + r * 8 + (lane() >> 2);
      if (lane() % 4 == 0 && row < p.seqlen_q) {
        // Without keys the sum is 0 and its logarithm -inf.
        p.tensors.lse[head * p.seqlen_q + row] =
            (softmax_.rows.max[0][r] + __log2f(sum)) * std::numbers::ln2_v<float>;
      }
      const float inverse = sum == 0.0F ? 0.0F : __fdividef(1.0F, sum);
#pragma unroll
      for (int n = 0; n < kConfig.headdim / 8; ++n) {
        o_.at[0][n][2 * r] *= inverse;
        o_.at[0][n][2 * r + 1] *= inverse;
      }
    }
#pragma unroll
    for (int k = 0; k < kConfig.headdim / 16; ++k) pack_weights<T>(rounded_[k], o_, k);
  }

  // Hands on O of the tile before. With early release in two parts of 128 columns, of which a
  // warp's shared memory holds one at a time; else there is the first alone.
  template <int kPart>
  __device__ __forceinline__ void store_last() {
    if (tile_ == 0 || (!kConfig.early_release && kPart == 1)) return;
    const Place place = read_place(tile_ - 1);
    const int warp_row = place.first_row + warp() * 16;
    const std::uint32_t lane_offset = TileLayout<64>::rows_first(lane(), 0);
    if constexpr (kConfig.early_release) {
      static_assert(kConfig.headdim == 256);
      constexpr int kSteps = 128 / 16;
      const std::uint32_t staged = smem_.o(warpgroup(), warp());
      if (leads()) ptx::tma_store_wait_read();
      __syncwarp();
#pragma unroll
      for (int k = 0; k < kSteps; ++k) {
        ptx::stmatrix_x4(staged + static_cast<std::uint32_t>(k / 4 * 16 * kRowBytes) +
                             TileLayout<64>::advance(lane_offset, k % 4 * 2),
                         rounded_[kPart * kSteps + k][0]);
      }
      ptx::fence_proxy_async();
      __syncwarp();
      if (leads()) {
#pragma unroll
        for (int column = 0; column < 2; ++column) {
          ptx::tma_store(&args_.o, {64 * (2 * kPart + column), place.head, warp_row, place.batch},
                         staged + static_cast<std::uint32_t>(column * 16 * kRowBytes));
        }
        ptx::tma_store_commit();
      }
    } else {
      // Over the warp's own rows of Q, which no other warp reads.
#pragma unroll
      for (int k = 0; k < kConfig.headdim / 16; ++k) {
        ptx::stmatrix_x4(own_rows(tile_ - 1) +
                             static_cast<std::uint32_t>(k / 4 * kWarpgroupRows * kRowBytes) +
                             TileLayout<64>::advance(lane_offset, k % 4 * 2),
                         rounded_[k][0]);
      }
      ptx::fence_proxy_async();
      __syncwarp();
      release(smem_.o_full(Slots::at(tile_ - 1)));
    }
  }
};

// Launched with as many CTAs as SMs, at most one a tile.
template <class T, Config kConfig, class Softmax>
__device__ __forceinline__ void forward(const Arguments& args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // other architectures' code is never run: see `prepare`
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
    if (threadIdx.x == 0) {
      plan(args, smem);
    } else if (threadIdx.x == 32) {
      load(args, smem);
    } else if (threadIdx.x == 64 && !kConfig.early_release) {
      store(args, smem);
    }
  } else {
    ptx::take_registers_up_to<kConfig.consumer_registers()>();
    Consumer<T, kConfig, Softmax>(args, smem).run();
  }
#endif
}

}  // namespace rooflash::hopper
