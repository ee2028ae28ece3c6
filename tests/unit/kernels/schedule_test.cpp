// The order in which the Hopper families' persistent grid takes query tiles.
#include "common/hopper/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rooflash::hopper {
namespace {

constexpr std::int64_t kSectionBytes = 32 << 20;

constexpr int kSmCount = 132;

struct Shape {
  std::int64_t query_blocks, heads, group, kv_head_bytes;
  bool even;
  Schedule order() const {
    return schedule(query_blocks, heads, group, kv_head_bytes, even, kSmCount);
  }
};

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (const std::int64_t query_blocks : {1, 3, 64}) {
    for (const std::int64_t group : {1, 4, 7}) {
      for (const std::int64_t kv_heads : {1, 5, 16, 200}) {
        for (const std::int64_t kv_head_bytes :
             {std::int64_t{256}, kSectionBytes / 8, kSectionBytes / 3, kSectionBytes + 1}) {
          result.push_back({query_blocks, kv_heads * group, group, kv_head_bytes, false});
          result.push_back({query_blocks, kv_heads * group, group, kv_head_bytes, true});
        }
      }
    }
  }
  return result;
}

TEST(Schedule, EveryQueryTileComesOnce) {
  for (const Shape& s : shapes()) {
    const Schedule order = s.order();
    ASSERT_EQ(order.tiles(), s.query_blocks * s.heads);
    std::vector<int> times(static_cast<std::size_t>(order.tiles()));
    for (int i = 0; i < order.tiles(); ++i) {
      const Work work = order.work(i);
      ASSERT_TRUE(0 <= work.head && work.head < s.heads);
      ASSERT_TRUE(0 <= work.query_block && work.query_block < s.query_blocks);
      ++times[static_cast<std::size_t>(work.head * s.query_blocks + work.query_block)];
    }
    EXPECT_EQ(std::count(times.begin(), times.end(), 1), order.tiles());
  }
}

// The K and V of a section fit its part of L2, or are those of one KV head; the last section may
// have one of the others besides.
TEST(Schedule, SectionsAreBounded) {
  for (const Shape& s : shapes()) {
    const Schedule order = s.order();
    ASSERT_GE(order.section_heads, 1);
    EXPECT_EQ(order.section_heads % s.group, 0);
    EXPECT_EQ((s.heads - order.last_heads) % order.section_heads == 0 || s.even, true);
    const auto fits = [&](std::int64_t heads) {
      return heads <= s.group || heads / s.group * s.kv_head_bytes <= kSectionBytes;
    };
    EXPECT_TRUE(fits(order.section_heads));
    EXPECT_TRUE(fits(order.last_heads - order.section_heads + s.group));
    // A section other than the last is no larger than it takes to have work for all SMs.
    EXPECT_TRUE(order.section_heads == s.group || order.section_heads * s.query_blocks <= kSmCount);
  }
}

int section_of(const Schedule& order, int head) {
  const int first_heads = order.heads - order.last_heads;
  return head >= first_heads ? order.heads : head / order.section_heads;
}

TEST(Schedule, TheLongestTilesOfASectionComeFirst) {
  for (const Shape& s : shapes()) {
    const Schedule order = s.order();
    for (int i = 1; i < order.tiles(); ++i) {
      const Work before = order.work(i - 1);
      const Work work = order.work(i);
      const int section_before = section_of(order, before.head);
      const int section = section_of(order, work.head);
      ASSERT_TRUE(section == section_before ? work.query_block <= before.query_block
                                            : section > section_before);
    }
  }
}

// Where blocks differ in length the run ends with the short ones of many heads, not of one: the
// last section is several times what all SMs take at once, where there are so many heads and L2
// holds them.
TEST(Schedule, UnevenTilesEndWithALargeSection) {
  const Schedule uneven = schedule(6, 256, 1, 1 << 19, false, kSmCount);
  EXPECT_EQ(uneven.section_heads, 22);
  EXPECT_GE(uneven.last_heads * 6, 2 * kSmCount);
  EXPECT_LE(uneven.last_heads, 64 + 22);
  const Schedule few = schedule(86, 16, 1, 8 << 20, false, kSmCount);
  EXPECT_EQ(few.section_heads, 1);
  EXPECT_EQ(few.last_heads, 4);
  const Schedule even = schedule(6, 256, 1, 1 << 19, true, kSmCount);
  EXPECT_EQ(even.last_heads, 0);
}

// As many tiles as 32 bits number: none of the products on the way is larger.
TEST(Schedule, ManyTiles) {
  constexpr std::int64_t kBlocks = std::int64_t{1} << 20;
  const Schedule order = schedule(kBlocks, 2047, 1, 1 << 10, false, kSmCount);
  const Work last = order.work(order.tiles() - 1);
  EXPECT_EQ(last.head, 2046);
  EXPECT_EQ(last.query_block, 0);
  EXPECT_EQ(order.work(0).query_block, kBlocks - 1);
}

TEST(Splits, PartsCoverAllStagesAndAreEquallyLong) {
  for (const int begin : {0, 5}) {
    for (const int stages : {0, 1, 2, 3, 7, 64, 127, 1000}) {
      for (const int parts : {1, 2, 3, 7, 64, kMostSplits}) {
        const int end = begin + stages;
        EXPECT_EQ(part_begin(begin, end, 0, parts), begin);
        EXPECT_EQ(part_begin(begin, end, parts, parts), end);
        for (int part = 0; part < parts; ++part) {
          const int length =
              part_begin(begin, end, part + 1, parts) - part_begin(begin, end, part, parts);
          ASSERT_TRUE(length == stages / parts || length == stages / parts + 1);
        }
      }
    }
  }
}

// As many keys as a family takes, in the shortest stages: 32 bits hold the products.
TEST(Splits, PartsOfManyStages) {
  constexpr int kStages = (1 << 29) / 64;
  EXPECT_EQ(part_begin(0, kStages, kMostSplits, kMostSplits), kStages);
}

TEST(Splits, FillTheSmsOnce) {
  static_assert(splits_for(1, 1000, 132) == kMostSplits);
  static_assert(splits_for(2, 1000, 132) == 66);
  static_assert(splits_for(8, 1000, 132) == 16);
  static_assert(splits_for(66, 1000, 132) == 2);
  static_assert(splits_for(67, 1000, 132) == 1);
  static_assert(splits_for(132, 1000, 132) == 1);
  static_assert(splits_for(std::int64_t{1} << 31, 1000, 132) == 1);
  // Short parts are not worth their ends.
  static_assert(splits_for(1, 0, 132) == 1);
  static_assert(splits_for(1, 3, 132) == 1);
  static_assert(splits_for(1, 4, 132) == 2);
  static_assert(splits_for(1, 64, 132) == 32);
  for (int tiles = 1; tiles < 200; ++tiles) {
    for (int stages = 0; stages < 200; ++stages) {
      const int splits = splits_for(tiles, stages, kSmCount);
      ASSERT_TRUE(splits == 1 || (splits * tiles <= kSmCount && stages / splits >= 2));
    }
  }
}

TEST(Splits, OfAProblem) {
  constexpr Config kWide{128, 3, 64, 2, 2, false, false, true};  // 192 queries, 128 keys
  Problem p;
  p.heads_q = 8;
  p.heads_kv = 8;
  p.seqlen_q = 1;
  p.seqlen_kv = 1 << 17;
  EXPECT_EQ(splits_for(p, kWide, kSmCount), 16);
  p.seqlen_q = 193;
  EXPECT_EQ(splits_for(p, kWide, kSmCount), 8);
  p.batch = 9;
  EXPECT_EQ(splits_for(p, kWide, kSmCount), 1);
  // A window of 1,024 keys for each of 193 rows: at most 10 stages of 128 keys.
  p.batch = 1;
  p.mask = {MaskKind::window, Align::bottom_right, 1023, 0};
  EXPECT_EQ(splits_for(p, kWide, kSmCount), 5);
  // No query sees a key.
  p.seqlen_kv = 128;
  p.seqlen_q = 1;
  p.mask = {MaskKind::window, Align::top_left, 0, -1};
  EXPECT_EQ(splits_for(p, kWide, kSmCount), 1);
}

// The tile of a KV head has the rows of all its query heads.
TEST(Packing, TilesAndTheirKeys) {
  constexpr Config kPacked{.headdim = 128,
                           .consumers = 2,
                           .block_n = 64,
                           .stage_blocks = 1,
                           .stages = 2,
                           .early_release = false,
                           .split = true};
  Problem p;
  p.batch = 3;
  p.heads_q = 16;
  p.heads_kv = 2;
  p.seqlen_q = 33;
  p.seqlen_kv = 100;
  p.mask.kind = MaskKind::causal;
  EXPECT_EQ(packed_heads(p, kPacked), 8);
  const Schedule order = schedule_for(p, kPacked.block_m(), kSmCount, 8);
  EXPECT_EQ(order.query_blocks, 3);  // of 264 rows
  EXPECT_EQ(order.heads, 6);
  // Rows 120 to 135 are of queries 15 and 16, which see 83 and 84 keys.
  const KeyBlocks blocks = blocks_of_rows(p, 8, 120, 16, 1);
  EXPECT_EQ(blocks.end, 84);
  EXPECT_EQ(blocks.whole_end, 83);
  EXPECT_EQ(blocks_of_rows(p, 8, 256, 64, 1).end, 100);
  EXPECT_EQ(blocks_of_rows(p, 8, 264, 64, 1).end, 0);
  EXPECT_EQ(blocks_of_rows(p, 1, 32, 64, 1).end, 100);
  p.seqlen_q = 1;
  p.seqlen_kv = 1 << 16;
  EXPECT_EQ(splits_for(p, kPacked, kSmCount), 22);  // of 6 tiles
  // As many heads as fill a warpgroup's rows evenly.
  struct Group {
    std::int64_t heads, packed;
  };
  for (const auto& [heads, packed] : {Group{1, 1}, Group{3, 1}, Group{6, 2}, Group{12, 4},
                                      Group{64, 64}, Group{65, 1}, Group{96, 32}, Group{256, 64}}) {
    p.heads_q = 2 * heads;
    EXPECT_EQ(packed_heads(p, kPacked), packed) << heads;
  }
}

}  // namespace
}  // namespace rooflash::hopper
