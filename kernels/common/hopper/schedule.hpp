// Which query tile comes when: the order in which a persistent grid takes its work. CUDA-free; nvcc
// compiles the constexpr functions for the device too.
#pragma once

#include <algorithm>
#include <cstdint>

namespace rooflash::hopper {

struct Work {
  int head;         // query head, over the whole batch
  int query_block;  // of it
};

// Query blocks of all heads, the last of each head first, which are the longest under a causal mask.
// Heads come in sections whose K and V fit in L2 together.
struct Schedule {
  int query_blocks;
  int heads;
  int section_heads;

  constexpr int tiles() const { return query_blocks * heads; }

  constexpr Work work(int tile) const {
    const int section = tile / (section_heads * query_blocks);
    const int first_head = section * section_heads;
    const int heads_here = std::min(section_heads, heads - first_head);
    const int place = tile - first_head * query_blocks;
    return {first_head + place % heads_here, query_blocks - 1 - place / heads_here};
  }
};

// `kv_head_bytes` of K and V serve `group` query heads.
constexpr Schedule schedule(std::int64_t query_blocks, std::int64_t heads, std::int64_t group,
                            std::int64_t kv_head_bytes) {
  constexpr std::int64_t kSectionBytes = 32 << 20;
  const std::int64_t kv_heads = std::max<std::int64_t>(kSectionBytes / kv_head_bytes, 1);
  return {static_cast<int>(query_blocks), static_cast<int>(heads),
          static_cast<int>(std::min(kv_heads * group, heads))};
}

}  // namespace rooflash::hopper
