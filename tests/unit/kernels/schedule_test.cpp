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

}  // namespace
}  // namespace rooflash::hopper
