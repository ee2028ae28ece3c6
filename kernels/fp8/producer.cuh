// The threads of an fp8 kernel that move data: one that takes tiles and loads, and the warps that
// transpose V.
#pragma once

#include "common/ptx/mma.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/special.cuh"
#include "common/ptx/tma.cuh"
#include "common/ptx/wgmma.cuh"
#include "fp8/smem.cuh"

namespace rooflash::fp8 {

// ---- load: one thread

// Notes a tile down. The key blocks that its rows see.
template <Config kConfig>
__device__ __forceinline__ Range write_notes(const Arguments& args, const Smem<kConfig>& smem,
                                             int tile, const Place& place) {
  const BasicKeyBlocks<int> all =
      hopper::blocks_of<kConfig.block_n>(args, place.first_row, kConfig.block_m());
  ptx::store_shared_16(smem.note(tile), {place.batch, place.head, all.begin, all.end});
#pragma unroll 1
  for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
    const int row = place.first_row + warpgroup * kWarpgroupRows;
    BasicKeyBlocks<int> own{};
    if (row < args.problem.seqlen_q) {
      own = hopper::blocks_of<kConfig.block_n>(args, row, kWarpgroupRows);
    }
    if (own.begin >= own.end) own.begin = own.end = all.begin;
    ptx::store_shared_16(smem.note(tile, warpgroup), {place.batch, place.head, row, place.head_kv});
    ptx::store_shared_16(smem.note(tile, warpgroup) + 16,
                         {own.begin, own.end, own.whole_begin, own.whole_end});
  }
  return {all.begin, all.end};
}

template <Config kConfig>
__device__ __forceinline__ void load(const Arguments& args, const Smem<kConfig>& smem) {
  const ForwardArguments& p = args.problem;
  const std::uint64_t once = ptx::evict_first();
  const std::uint64_t often = ptx::evict_last();
  using Slots = Ring<kConfig.q_slots>;
  using KeyStages = Ring<kConfig.k_stages>;
  using LoadedStages = Ring<kConfig.loaded_stages>;
  int count = 0;   // of tiles so far
  int keys = 0;    // blocks of K so far
  int values = 0;  // and of V
  const auto load_block = [&](const CUtensorMap* map, std::uint32_t target, std::uint32_t full,
                              const Place& place, int block) {
    ptx::mbarrier_arrive_expect(full, kConfig.kv_bytes());
    const int head = place.head / (p.heads_q / p.heads_kv);
#pragma unroll
    for (int column = 0; column < kConfig.columns(); ++column) {
      ptx::tma_load(
          target + static_cast<std::uint32_t>(column * kConfig.block_n * kConfig.row_bytes()), map,
          {kConfig.row_bytes() * column, head, block * kConfig.block_n, place.batch}, full, often);
    }
  };
  const auto load_keys = [&](const Place& place, int block) {
    const int stage = KeyStages::at(keys);
    ptx::mbarrier_wait(smem.k_empty(stage), KeyStages::phase(keys) ^ 1U);
    load_block(&args.k, smem.k(stage), smem.k_full(stage), place, block);
    keys = ptx::fresh(keys + 1);
  };
  const auto load_values = [&](const Place& place, int block) {
    const int stage = LoadedStages::at(values);
    ptx::mbarrier_wait(smem.loaded_empty(stage), LoadedStages::phase(values) ^ 1U);
    load_block(&args.v, smem.loaded(stage), smem.loaded_full(stage), place, block);
    values = ptx::fresh(values + 1);
  };
  const auto wait_for_slot = [&] {
    ptx::mbarrier_wait(smem.q_empty(Slots::at(count)), Slots::phase(count) ^ 1U);
  };

  unsigned tile = blockIdx.x;  // beyond the last it may be more than an int holds
#pragma unroll 1
  for (; tile < static_cast<unsigned>(args.schedule.tiles()); ++count) {
    const hopper::Work work = args.schedule.work(static_cast<int>(tile));
    const int batch = work.head / p.heads_q;
    const int head = work.head % p.heads_q;
    const Place place{batch, head, work.query_block * kConfig.block_m(),
                      batch * p.heads_kv + head / (p.heads_q / p.heads_kv)};
    const Range range = write_notes(args, smem, count, place);
    if (range.begin < range.end) load_keys(place, range.end - 1);
    wait_for_slot();
    const std::uint32_t full = smem.q_full(Slots::at(count));
    ptx::mbarrier_arrive_expect(full, kConfig.q_bytes());
#pragma unroll 1
    for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
#pragma unroll
      for (int column = 0; column < kConfig.columns(); ++column) {
        ptx::tma_load(smem.q(Slots::at(count), warpgroup) +
                          static_cast<std::uint32_t>(column * kWarpgroupRows * kConfig.row_bytes()),
                      &args.q,
                      {kConfig.row_bytes() * column, place.head,
                       place.first_row + warpgroup * kWarpgroupRows, place.batch},
                      full, once);
      }
    }
#pragma unroll 1
    for (int block = range.end - 1; block > range.begin; --block) {
      load_keys(place, block - 1);
      load_values(place, block);
    }
    // The next tile is taken late: who is done first goes on.
    tile = gridDim.x + atomicAdd(&args.counters->taken, 1U);
    if (range.begin < range.end) load_values(place, range.begin);
  }
  wait_for_slot();
  ptx::store_shared_16(smem.note(count), {-1, 0, 0, 0});
  for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
    ptx::store_shared_16(smem.note(count, warpgroup), {-1, 0, 0, 0});
  }
  ptx::mbarrier_arrive(smem.q_full(Slots::at(count)));
  // Who transposes has read `blocks` for the last block, and waits for the next.
  const int last = values - 1;
  if (last >= 0) {
    ptx::mbarrier_wait(smem.loaded_empty(LoadedStages::at(last)), LoadedStages::phase(last));
  }
  ptx::store_shared_4(smem.blocks(), static_cast<std::uint32_t>(values));
  ptx::mbarrier_arrive(smem.loaded_full(LoadedStages::at(values)));
  if (atomicAdd(&args.counters->done, 1U) == gridDim.x - 1) *args.counters = {0, 0};
}

// ---- transpose: kTransposingWarps warps

// The warp's part of a block: every third 16 channels.
template <Config kConfig>
__device__ __forceinline__ void transpose_block(std::uint32_t from, std::uint32_t to, int warp,
                                                int lane) {
  constexpr int kSteps = kConfig.block_n / 32;
#pragma unroll 1
  for (int chunk = warp; chunk < kConfig.headdim / 16; chunk += kTransposingWarps) {
    std::uint32_t pairs[kSteps][4];
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      ptx::ldmatrix_x4_trans(pairs[step], from + loaded_offset(kConfig.row_bytes(), kConfig.block_n,
                                                               lane, step, chunk));
    }
#pragma unroll
    for (int step = 0; step < kSteps; ++step) {
      const std::uint32_t(&r)[4] = pairs[step];
      const std::uint32_t parted[4] = {
          __byte_perm(r[0], r[1], kEvenChannels), __byte_perm(r[0], r[1], kOddChannels),
          __byte_perm(r[2], r[3], kEvenChannels), __byte_perm(r[2], r[3], kOddChannels)};
      ptx::stmatrix_x4(to + transposed_offset(kConfig.headdim, lane, step, chunk), parted);
    }
  }
}

template <Config kConfig>
__device__ __forceinline__ void transpose(const Smem<kConfig>& smem) {
  using LoadedStages = Ring<kConfig.loaded_stages>;
  using Stages = Ring<kConfig.v_stages>;
  const int warp = static_cast<int>(threadIdx.x) / 32 - 1;
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll 1
  for (int use = 0;; ++use) {
    const int from = LoadedStages::at(use);
    const int to = Stages::at(use);
    ptx::mbarrier_wait(smem.loaded_full(from), LoadedStages::phase(use));
    // By the lane that arrives below: its read comes before that.
    const std::uint32_t blocks = lane == 0 ? ptx::load_shared_4(smem.blocks()) : 0;
    if (static_cast<int>(__shfl_sync(0xFFFFFFFFU, blocks, 0)) == use) break;
    ptx::mbarrier_wait(smem.v_empty(to), Stages::phase(use) ^ 1U);
    transpose_block<kConfig>(smem.loaded(from), smem.v(to), warp, lane);
    ptx::fence_proxy_async();
    __syncwarp();
    if (lane == 0) {
      ptx::mbarrier_arrive(smem.v_full(to));
      ptx::mbarrier_arrive(smem.loaded_empty(from));
    }
  }
}

}  // namespace rooflash::fp8
