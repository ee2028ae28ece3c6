// Shared memory of the fp8 kernels: tiles, the barriers at which their threads meet, and notes on
// query tiles.
#pragma once

#include "common/hopper/smem.cuh"
#include "fp8/arguments.cuh"
#include "fp8/layout.hpp"

namespace rooflash::fp8 {

using hopper::Own;
using hopper::Range;
using hopper::Ring;

inline constexpr int kTransposingWarps = 3;

// What is noted on a query tile.
struct Place {
  int batch;  // below 0: no tile is left
  int head;   // of Q
  int first_row;
  int head_kv;  // over the whole batch
};

// Addresses of everything in shared memory.
template <Config kConfig>
struct Smem {
  std::uint32_t base;

  __device__ __forceinline__ explicit Smem(const unsigned char* raw)
      : base((ptx::smem_address(raw) + 1023U) & ~1023U) {}
  __device__ __forceinline__ std::uint32_t at(int bytes) const {
    return base + static_cast<std::uint32_t>(bytes);
  }
  // Rows of one warpgroup are together: its columns, one after another.
  __device__ __forceinline__ std::uint32_t q(int slot, int warpgroup) const {
    return at(slot * kConfig.q_bytes() + warpgroup * kWarpgroupRows * kConfig.headdim);
  }
  __device__ __forceinline__ std::uint32_t k(int stage) const {
    return at(kConfig.q_slots * kConfig.q_bytes() + stage * kConfig.kv_bytes());
  }
  __device__ __forceinline__ std::uint32_t loaded(int stage) const {
    return k(kConfig.k_stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v(int stage) const {
    return loaded(kConfig.loaded_stages + stage);
  }
  // A warp's own.
  __device__ __forceinline__ std::uint32_t own(int warpgroup, int warp) const {
    return v(kConfig.v_stages) +
           static_cast<std::uint32_t>((warpgroup * 4 + warp) * kConfig.own_bytes());
  }
  __device__ __forceinline__ std::uint32_t barrier(int index) const {
    return own(kConfig.consumers, 0) + static_cast<std::uint32_t>(8 * index);
  }
  __device__ __forceinline__ std::uint32_t q_full(int slot) const { return barrier(slot); }
  __device__ __forceinline__ std::uint32_t q_empty(int slot) const {
    return barrier(kConfig.q_slots + slot);
  }
  __device__ __forceinline__ std::uint32_t k_full(int stage) const {
    return barrier(2 * kConfig.q_slots + stage);
  }
  __device__ __forceinline__ std::uint32_t k_empty(int stage) const {
    return k_full(kConfig.k_stages + stage);
  }
  __device__ __forceinline__ std::uint32_t loaded_full(int stage) const {
    return k_full(2 * kConfig.k_stages + stage);
  }
  __device__ __forceinline__ std::uint32_t loaded_empty(int stage) const {
    return loaded_full(kConfig.loaded_stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v_full(int stage) const {
    return loaded_full(2 * kConfig.loaded_stages + stage);
  }
  __device__ __forceinline__ std::uint32_t v_empty(int stage) const {
    return v_full(kConfig.v_stages + stage);
  }
  static constexpr int kBarriers =
      2 * (kConfig.q_slots + kConfig.k_stages + kConfig.loaded_stages + kConfig.v_stages);
  // How many blocks of V there are to transpose, once that is known; before, -1.
  __device__ __forceinline__ std::uint32_t blocks() const { return barrier(kBarriers); }
  // The notes on the CTA's query tile number `tile`: one for all, then one for each warpgroup.
  __device__ __forceinline__ std::uint32_t note(int tile) const {
    return barrier(kBarriers + 2) +
           static_cast<std::uint32_t>(tile % kNotes * (16 + kConfig.consumers * kNoteBytes));
  }
  __device__ __forceinline__ std::uint32_t note(int tile, int warpgroup) const {
    return note(tile) + static_cast<std::uint32_t>(16 + warpgroup * kNoteBytes);
  }
  // That are kept. When a note is written the tile 1 + q_slots before it has given up its Q, so
  // that only tiles from there on are read about.
  static constexpr int kNotes = 4;
  static constexpr int kNoteBytes = 32;
  static_assert(kConfig.q_slots + 2 <= kNotes);
  static_assert(kBarriers % 2 == 0, "notes begin at a multiple of 16 bytes");
  static_assert(8 * (kBarriers + 2) + kNotes * (16 + kConfig.consumers * kNoteBytes) <= 1024);
  static_assert(kConfig.smem_bytes() <= 227 * 1024, "what a block may use on sm_90");

  __device__ __forceinline__ void init() const {
    constexpr int kWarps = 4 * kConfig.consumers;
    for (int slot = 0; slot < kConfig.q_slots; ++slot) {
      ptx::mbarrier_init(q_full(slot), 1);
      ptx::mbarrier_init(q_empty(slot), kWarps);
    }
    for (int stage = 0; stage < kConfig.k_stages; ++stage) {
      ptx::mbarrier_init(k_full(stage), 1);
      ptx::mbarrier_init(k_empty(stage), kWarps);
    }
    for (int stage = 0; stage < kConfig.loaded_stages; ++stage) {
      ptx::mbarrier_init(loaded_full(stage), 1);
      ptx::mbarrier_init(loaded_empty(stage), kTransposingWarps);
    }
    for (int stage = 0; stage < kConfig.v_stages; ++stage) {
      ptx::mbarrier_init(v_full(stage), kTransposingWarps);
      ptx::mbarrier_init(v_empty(stage), kWarps);
    }
    ptx::store_shared_4(blocks(), ~0U);
    ptx::mbarrier_init_fence();
  }
};

}  // namespace rooflash::fp8
