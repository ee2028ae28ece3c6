// The order in which the Hopper families' persistent grid takes query tiles.
#include "common/hopper/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace rooflash::hopper {
namespace {

constexpr std::int64_t kSectionBytes = 32 << 20;

struct Shape {
  std::int64_t query_blocks, heads, group, kv_head_bytes;
};

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (const std::int64_t query_blocks : {1, 3, 64}) {
    for (const std::int64_t group : {1, 4, 7}) {
      for (const std::int64_t kv_heads : {1, 5, 16}) {
        for (const std::int64_t kv_head_bytes :
             {std::int64_t{256}, kSectionBytes / 8, kSectionBytes / 3, kSectionBytes + 1}) {
          result.push_back({query_blocks, kv_heads * group, group, kv_head_bytes});
        }
      }
    }
  }
  return result;
}

TEST(Schedule, EveryQueryTileComesOnce) {
  for (const Shape& s : shapes()) {
    const Schedule order = schedule(s.query_blocks, s.heads, s.group, s.kv_head_bytes);
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

// The K and V of a section fit its part of L2, or are those of one KV head.
TEST(Schedule, SectionsAreBounded) {
  for (const Shape& s : shapes()) {
    const Schedule order = schedule(s.query_blocks, s.heads, s.group, s.kv_head_bytes);
    ASSERT_GE(order.section_heads, 1);
    EXPECT_EQ(order.section_heads % s.group, 0);
    const std::int64_t kv_heads = order.section_heads / s.group;
    EXPECT_TRUE(kv_heads == 1 || kv_heads * s.kv_head_bytes <= kSectionBytes);
    // And they are no smaller than that asks for.
    EXPECT_TRUE(order.section_heads == s.heads || (kv_heads + 1) * s.kv_head_bytes > kSectionBytes);
  }
}

TEST(Schedule, TheLongestTilesOfASectionComeFirst) {
  for (const Shape& s : shapes()) {
    const Schedule order = schedule(s.query_blocks, s.heads, s.group, s.kv_head_bytes);
    for (int i = 1; i < order.tiles(); ++i) {
      const Work before = order.work(i - 1);
      const Work work = order.work(i);
      const int section_before = before.head / order.section_heads;
      const int section = work.head / order.section_heads;
      ASSERT_TRUE(section == section_before ? work.query_block <= before.query_block
                                            : section == section_before + 1);
    }
  }
}

// As many tiles as 32 bits number: none of the products on the way is larger.
TEST(Schedule, ManyTiles) {
  constexpr std::int64_t kBlocks = std::int64_t{1} << 20;
  const Schedule order = schedule(kBlocks, 2047, 1, 1 << 10);
  const Work last = order.work(order.tiles() - 1);
  EXPECT_EQ(last.head, 2046);
  EXPECT_EQ(last.query_block, 0);
  EXPECT_EQ(order.work(0).query_block, kBlocks - 1);
}

}  // namespace
}  // namespace rooflash::hopper
