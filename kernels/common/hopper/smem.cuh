// Shared memory of the Hopper pipeline: tiles, the barriers at which its threads meet, and notes on
// query tiles.
#pragma once

#include "common/hopper/arguments.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/ptx/tma.cuh"

namespace rooflash::hopper {

constexpr int kRowBytes = 128;  // of a tile's column of 64 elements

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
  // `load` has read the note on the tile. Where tiles have no keys, nothing else keeps `plan` from
  // writing over it.
  __device__ __forceinline__ std::uint32_t answered(int tile) const {
    return barrier(10 + 4 * kConfig.stages + tile % kNotes);
  }
  // With `pair`: rank 0 has handed the number of the next pair of tiles to rank 1, which has taken
  // it from `work`.
  __device__ __forceinline__ std::uint32_t handed() const { return barrier(kBarriers - 2); }
  __device__ __forceinline__ std::uint32_t taken() const { return barrier(kBarriers - 1); }
  __device__ __forceinline__ std::uint32_t work() const {
    return barrier(kBarriers) + static_cast<std::uint32_t>(kNotesBytes);
  }
  // The notes on the CTA's query tile number `tile`: one for all, then one for each warpgroup.
  __device__ __forceinline__ std::uint32_t note(int tile) const {
    return barrier(kBarriers) +
           static_cast<std::uint32_t>(tile % kNotes * (16 + kConfig.consumers * kNoteBytes));
  }
  __device__ __forceinline__ std::uint32_t note(int tile, int warpgroup) const {
    return note(tile) + static_cast<std::uint32_t>(16 + warpgroup * kNoteBytes);
  }
  // That are kept. A note is written when its tile is taken, and consumers have then begun the tile
  // before; they read the notes of that one and of the one before it.
  static constexpr int kNotes = 4;
  static constexpr int kNoteBytes = 32;
  static constexpr int kNotesBytes = kNotes * (16 + kConfig.consumers * kNoteBytes);
  static constexpr int kBarriers = 10 + 4 * kConfig.stages + kNotes + (kConfig.pair ? 2 : 0);
  static_assert(8 * kBarriers + kNotesBytes + (kConfig.pair ? 4 : 0) <= 1024);
  static_assert(!(kConfig.pair && kConfig.split));

  __device__ __forceinline__ void init() const {
    constexpr int kWarps = 4 * kConfig.consumers;
    for (int slot = 0; slot < kConfig.q_slots(); ++slot) {
      ptx::mbarrier_init(q_full(slot), 1);
      ptx::mbarrier_init(q_empty(slot), kConfig.consumers_free_query() ? kWarps : 1);
      ptx::mbarrier_init(o_full(slot), kWarps);
    }
    for (int tile = 0; tile < kNotes; ++tile) {
      ptx::mbarrier_init(noted(tile), 1);
      ptx::mbarrier_init(answered(tile), 1);
    }
    for (int stage = 0; stage < kConfig.stages; ++stage) {
      ptx::mbarrier_init(k_full(stage), 1);
      ptx::mbarrier_init(v_full(stage), 1);
      ptx::mbarrier_init(k_empty(stage), kWarps * kConfig.ctas());
      ptx::mbarrier_init(v_empty(stage), kWarps * kConfig.ctas());
    }
    if constexpr (kConfig.pair) {
      ptx::mbarrier_init(handed(), 1);
      ptx::mbarrier_init(taken(), 1);
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
  int head;   // of Q; with `split` the number of a group of packed ones
  int first_row;
  int part;  // of its keys
};
// The stages of K and V that some row of the tile sees, of the part.
struct Range {
  int begin, end;
};
// The key blocks that a warpgroup's rows see, possibly none, of the part.
struct Own {
  int begin, end;
  int whole_begin, whole_end;  // of them, those that all rows see
};

// Of the CTA in its cluster.
template <Config kConfig>
__device__ __forceinline__ int rank() {
  return kConfig.pair ? ptx::cluster_rank() : 0;
}

// log2 of the rows that a query has.
template <Config kConfig>
__device__ __forceinline__ int row_shift(const Arguments& args) {
  return kConfig.split ? args.group_log2 : 0;
}

// Corner of the box of Q or O that begins with row `row` of the place's tile.
template <Config kConfig>
__device__ __forceinline__ auto corner(const Arguments& args, const Place& place, int row,
                                       int column) {
  if constexpr (kConfig.split) {
    const int member = row & ((1 << args.group_log2) - 1);
    return ptx::GroupCorner{column, member, place.head, row >> args.group_log2, place.batch};
  } else {
    return ptx::Corner{column, place.head, row, place.batch};
  }
}

}  // namespace rooflash::hopper
