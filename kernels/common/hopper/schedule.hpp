// Which query tile comes when: the order in which a persistent grid takes its work. CUDA-free; nvcc
// compiles the constexpr functions for the device too.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "common/hopper/config.hpp"
#include "common/mask.hpp"
#include "core/problem.hpp"

namespace rooflash::hopper {

struct Work {
  int head;         // query head, over the whole batch
  int query_block;  // of it
};

// Heads come in sections. In a section the last query blocks of its heads come first, which are the
// longest under a causal mask. Sections are small, so that K and V are asked of memory evenly over
// the run; but where blocks differ in length the last one is as large as L2 holds, or as it takes
// to end with short blocks on all SMs.
struct Schedule {
  int query_blocks;
  int heads;
  int section_heads;
  int last_heads;  // in the last section, which comes after all whole others

  constexpr int tiles() const { return query_blocks * heads; }

  constexpr Work work(int tile) const {
    const int first_heads = heads - last_heads;
    int first_head = tile / (section_heads * query_blocks) * section_heads;
    int heads_here = std::min(section_heads, first_heads - first_head);
    if (first_head >= first_heads) {
      first_head = first_heads;
      heads_here = last_heads;
    }
    const int place = tile - first_head * query_blocks;
    return {first_head + place % heads_here, query_blocks - 1 - place / heads_here};
  }
};

// `kv_head_bytes` of K and V serve `group` query heads. `even`: all query blocks take as long.
constexpr Schedule schedule(std::int64_t query_blocks, std::int64_t heads, std::int64_t group,
                            std::int64_t kv_head_bytes, bool even, int sm_count) {
  constexpr std::int64_t kSectionBytes = 32 << 20;
  const auto heads_for = [&](std::int64_t tiles) {
    const std::int64_t kv_heads = tiles / (query_blocks * group);
    return std::max<std::int64_t>(kv_heads, 1) * group;
  };
  const std::int64_t in_l2 = std::max<std::int64_t>(kSectionBytes / kv_head_bytes, 1) * group;
  const std::int64_t last =
      even ? 0 : std::min({heads_for(std::int64_t{3} * sm_count), in_l2, heads});
  const std::int64_t section = std::min(heads_for(sm_count), in_l2);
  // Whole sections before the last, what is left over joins it.
  const std::int64_t first = even ? heads : (heads - last) / section * section;
  return {static_cast<int>(query_blocks), static_cast<int>(heads), static_cast<int>(section),
          static_cast<int>(heads - first)};
}

// Stages of keys [begin, end) cut into parts as long as one another, give or take a stage: where
// part number `part` begins, and the one before it ends. Empty parts are right too.
template <class Int>
constexpr Int part_begin(Int begin, Int end, Int part, Int parts) {
  return begin + (end - begin) * part / parts;
}

// Into how many parts the keys of query tiles are cut, the longest of which has `stages` stages:
// where there are fewer tiles than SMs, so that all SMs have work, but no part is so short that
// its beginning, its end and the sum of the parts take longer than its keys.
constexpr int splits_for(std::int64_t tiles, std::int64_t stages, int sm_count) {
  constexpr std::int64_t kFewestStages = 2;
  const std::int64_t splits = std::min(sm_count / tiles, stages / kFewestStages);
  return static_cast<int>(std::clamp<std::int64_t>(splits, 1, kMostSplits));
}

// Query heads that a query tile has rows of: one, or with `split` as many of those that share a KV
// head as give a warpgroup whole queries, a power of two that divides their number. One too where
// rows could not be counted in 32 bits.
inline std::int64_t packed_heads(const Problem& p, const Config& config) {
  if (!config.split) return 1;
  const auto group = static_cast<std::uint64_t>(p.heads_q / p.heads_kv);
  const std::int64_t packed =
      std::min<std::int64_t>(std::int64_t{1} << std::countr_zero(group), kWarpgroupRows);
  return p.seqlen_q * packed <= std::int64_t{1} << 29 ? packed : 1;
}

// Key blocks that `rows` rows of a query tile see from `first_row` on, as far as there are so many.
inline KeyBlocks blocks_of_rows(const Problem& p, std::int64_t packed_heads, std::int64_t first_row,
                                std::int64_t rows, std::int64_t block_kv) {
  const std::int64_t end = std::min(first_row + rows, p.seqlen_q * packed_heads);
  if (first_row >= end) return {};
  const std::int64_t query = first_row / packed_heads;
  return key_blocks(band_of(p), query, (end - 1) / packed_heads + 1 - query, p.seqlen_kv, block_kv);
}

inline Schedule schedule_for(const Problem& p, std::int64_t block_m, int sm_count,
                             std::int64_t packed_heads = 1) {
  return schedule((p.seqlen_q * packed_heads + block_m - 1) / block_m,
                  p.batch * p.heads_q / packed_heads, p.heads_q / p.heads_kv / packed_heads,
                  p.seqlen_kv * (p.headdim + p.headdim_v) * size_bytes(p.dtype),
                  p.mask.kind != MaskKind::causal, sm_count);
}

// 1 without `config.split`.
inline int splits_for(const Problem& p, const Config& config, int sm_count = kSmCount) {
  if (!config.split) return 1;
  const std::int64_t packed = packed_heads(p, config);
  const std::int64_t rows = p.seqlen_q * packed;
  const std::int64_t tiles =
      (rows + config.block_m() - 1) / config.block_m() * p.batch * p.heads_q / packed;
  if (tiles >= sm_count) return 1;
  std::int64_t stages = 0;
  for (std::int64_t row = 0; row < rows; row += config.block_m()) {
    const KeyBlocks seen = blocks_of_rows(p, packed, row, config.block_m(), config.stage_keys());
    stages = std::max(stages, seen.end - seen.begin);
  }
  return splits_for(tiles, stages, sm_count);
}

// For the parts' O and LSE.
inline std::int64_t parts_bytes(const Problem& p, std::int64_t splits) {
  return splits * (o_elements(p) + lse_elements(p)) * 4;
}

}  // namespace rooflash::hopper
