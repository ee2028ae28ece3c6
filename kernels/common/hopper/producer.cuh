// The three threads of the Hopper pipeline that move data.
#pragma once

#include "common/hopper/smem.cuh"
#include "common/ptx/cluster.cuh"
#include "common/ptx/shared.cuh"
#include "common/ptx/special.cuh"
#include "common/ptx/tma.cuh"

namespace rooflash::hopper {

// ---- plan: one thread

template <Config kConfig>
__device__ __forceinline__ void write_notes(const Arguments& args, const Smem<kConfig>& smem,
                                            int tile, const Place& place) {
  const int seqlen_q = args.problem.seqlen_q;
  const int shift = row_shift<kConfig>(args);
  // With `pair` those of both tiles: the CTAs load the same stages.
  const int cluster_row = place.first_row - rank<kConfig>() * kWarpgroupRows;
  BasicKeyBlocks<int> stages =
      blocks_of<kConfig.stage_keys()>(args, cluster_row >> shift, kConfig.cluster_rows() >> shift);
  if constexpr (kConfig.split) {
    const int begin = stages.begin;
    const int end = stages.end;
    stages.begin = part_begin(begin, end, place.part, args.parts.count);
    stages.end = part_begin(begin, end, place.part + 1, args.parts.count);
  }
  ptx::store_shared_16(smem.note(tile), {place.batch, place.head, stages.begin, stages.end});
#pragma unroll 1
  for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
    const int row = place.first_row + warpgroup * kConfig.warpgroup_step();
    BasicKeyBlocks<int> own{};
    if (row >> shift < seqlen_q) {
      own = blocks_of<kConfig.block_n>(args, row >> shift, kWarpgroupRows >> shift);
    }
    if constexpr (kConfig.split) {
      own.begin = max(own.begin, stages.begin * kConfig.stage_blocks);
      own.end = min(own.end, stages.end * kConfig.stage_blocks);
    }
    if (own.begin >= own.end) own.begin = own.end = stages.begin * kConfig.stage_blocks;
    ptx::store_shared_16(smem.note(tile, warpgroup), {place.batch, place.head, row, place.part});
    ptx::store_shared_16(smem.note(tile, warpgroup) + 16,
                         {own.begin, own.end, own.whole_begin, own.whole_end});
  }
}

// What a CTA takes next: a query tile, with `split` a part of its keys, all first parts first.
template <Config kConfig>
__device__ __forceinline__ unsigned works(const Arguments& args) {
  const auto tiles = static_cast<unsigned>(args.schedule.tiles());
  if constexpr (kConfig.split) return tiles * static_cast<unsigned>(args.parts.count);
  return tiles;
}
template <Config kConfig>
__device__ __forceinline__ Place place_of(const Arguments& args, int work) {
  const int tiles = kConfig.split ? args.schedule.tiles() : 0;
  const Work tile = args.schedule.work(kConfig.split ? work % tiles : work);
  const int heads = args.problem.heads_q >> row_shift<kConfig>(args);
  return {tile.head / heads, tile.head % heads,
          tile.query_block * kConfig.cluster_rows() + rank<kConfig>() * kWarpgroupRows,
          kConfig.split ? work / tiles : 0};
}

// Number `count` of what is taken beyond the first. With `pair` rank 0 takes it for both CTAs and
// hands it on; one under way is enough, as they go through the same stages.
template <Config kConfig>
__device__ __forceinline__ unsigned take_work(const Arguments& args, const Smem<kConfig>& smem,
                                              int count) {
  using Once = Ring<1>;
  if (rank<kConfig>() > 0) {
    ptx::mbarrier_arrive_expect(smem.handed(), 4);
    ptx::mbarrier_wait(smem.handed(), Once::phase(count));
    const unsigned work = ptx::load_shared_4(smem.work());
    ptx::mbarrier_arrive_at(smem.taken(), 0);
    return work;
  }
  const unsigned work = gridDim.x / kConfig.ctas() + atomicAdd(&args.counters->taken, 1U);
  if constexpr (kConfig.pair) {
    ptx::mbarrier_wait(smem.taken(), Once::phase(count) ^ 1U);
    ptx::store_async(smem.work(), work, smem.handed(), 1);
  }
  return work;
}

template <Config kConfig>
__device__ __forceinline__ void plan(const Arguments& args, const Smem<kConfig>& smem) {
  const std::uint64_t once = ptx::evict_first();
  using Slots = Ring<kConfig.q_slots()>;
  int count = 0;  // of tiles so far
  const auto wait_for_slot = [&] {
    ptx::mbarrier_wait(smem.q_empty(Slots::at(count)), Slots::phase(count) ^ 1U);
  };
  using Notes = Ring<Smem<kConfig>::kNotes>;
  const auto wait_for_note = [&] {
    ptx::mbarrier_wait(smem.answered(count), Notes::phase(count) ^ 1U);
  };
  unsigned tile = blockIdx.x / kConfig.ctas();  // beyond the last it may be more than an int holds
#pragma unroll 1
  for (; tile < works<kConfig>(args); ++count) {
    const Place place = place_of<kConfig>(args, static_cast<int>(tile));
    wait_for_note();
    write_notes(args, smem, count, place);
    ptx::mbarrier_arrive(smem.noted(count));
    const auto for_boxes = [&](auto visit) {
#pragma unroll
      for (int warpgroup = 0; warpgroup < kConfig.consumers; ++warpgroup) {
#pragma unroll
        for (int column = 0; column < kConfig.columns(); ++column) {
          visit(smem.q(Slots::at(count), warpgroup) +
                    static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes),
                corner<kConfig>(args, place, place.first_row + warpgroup * kConfig.warpgroup_step(),
                                64 * column));
        }
      }
    };
    if constexpr (kConfig.early_release) {
      for_boxes([&](std::uint32_t, auto at) { ptx::tma_prefetch_l2(&args.q, at); });
      wait_for_slot();
    }
    ptx::mbarrier_arrive_expect(smem.q_full(Slots::at(count)), kConfig.q_bytes());
    for_boxes([&](std::uint32_t target, auto at) {
      ptx::tma_load(target, &args.q, at, smem.q_full(Slots::at(count)), once);
    });
    // The next tile is taken when the one before this is done with, not sooner: who is done first
    // goes on. With one slot of Q, when this one's Q is there.
    if constexpr (kConfig.early_release) {
      ptx::mbarrier_wait(smem.q_full(0), Slots::phase(count));
    } else {
      ptx::mbarrier_wait(smem.q_empty(Slots::at(count + 1)), Slots::phase(count + 1) ^ 1U);
    }
    tile = take_work(args, smem, count);
  }
  wait_for_slot();
  wait_for_note();
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
  const int first_key = rank<kConfig>() * kConfig.box_keys();  // of a stage's, the CTA's part
  const std::uint64_t often = ptx::evict_last();
  using Notes = Ring<Smem<kConfig>::kNotes>;
  using Stages = Ring<kConfig.stages>;
  int keys = 0;    // stages of K so far
  int values = 0;  // and of V
#pragma unroll 1
  for (int count = 0;; ++count) {
    ptx::mbarrier_wait(smem.noted(count), Notes::phase(count));
    const int4 note = ptx::load_shared_int4(smem.note(count));
    ptx::mbarrier_arrive(smem.answered(count));
    const int batch = note.x;
    if (batch < 0) break;
    const int head_kv = (note.y << row_shift<kConfig>(args)) / group;
    const Range range{note.z, note.w};
    const auto load_stage = [&](const CUtensorMap* map, std::uint32_t target, std::uint32_t full,
                                std::uint32_t empty, std::uint32_t phase, int stage) {
      ptx::mbarrier_wait(empty, phase ^ 1U);
      ptx::mbarrier_arrive_expect(full, kConfig.kv_bytes());
#pragma unroll
      for (int column = 0; column < kConfig.columns(); ++column) {
        const std::uint32_t box =
            target +
            static_cast<std::uint32_t>((column * kConfig.stage_keys() + first_key) * kRowBytes);
        const ptx::Corner at{64 * column, head_kv, stage * kConfig.stage_keys() + first_key, batch};
        if constexpr (kConfig.pair) {
          ptx::tma_load_multicast(box, map, at, full, 0b11, often);
        } else {
          ptx::tma_load(box, map, at, full, often);
        }
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

// ---- store: one thread; not where consumers free Q

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
            corner<kConfig>(args, place, place.first_row + warpgroup * kConfig.warpgroup_step(),
                            64 * column),
            smem.q(slot, warpgroup) +
                static_cast<std::uint32_t>(column * kWarpgroupRows * kRowBytes));
      }
    }
    ptx::tma_store_commit();
    ptx::tma_store_wait_read();
    ptx::mbarrier_arrive(smem.q_empty(slot));
  }
}

}  // namespace rooflash::hopper
