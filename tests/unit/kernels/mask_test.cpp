// The band of a mask against the keys that each row sees, one by one.
#include "common/mask.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <utility>
#include <vector>

namespace rooflash {
namespace {

Problem problem(std::int64_t seqlen_q, std::int64_t seqlen_kv, Mask mask) {
  Problem p;
  p.seqlen_q = seqlen_q;
  p.seqlen_kv = seqlen_kv;
  p.mask = mask;
  return p;
}

std::vector<Problem> problems() {
  std::vector<Problem> result;
  for (const auto& [sq, sk] : {std::pair{1, 1}, {7, 300}, {300, 7}, {130, 130}, {65, 200}}) {
    for (const Align align : {Align::bottom_right, Align::top_left}) {
      result.push_back(problem(sq, sk, {MaskKind::none, align}));
      result.push_back(problem(sq, sk, {MaskKind::causal, align}));
      for (const auto& [left, right] :
           {std::pair{0, 0}, {10, 0}, {30, 20}, {-1, 5}, {5, -1}, {-1, -1}, {1000, 1000}}) {
        result.push_back(problem(sq, sk, {MaskKind::window, align, left, right}));
      }
    }
  }
  return result;
}

TEST(KeyBlocks, HoldWhatTheRowsSee) {
  for (const Problem& p : problems()) {
    for (const std::int64_t block_q : {1, 16, 64}) {
      for (const std::int64_t block_kv : {1, 16, 64}) {
        for (std::int64_t first = 0; first < p.seqlen_q; first += block_q) {
          const std::int64_t rows = std::min(block_q, p.seqlen_q - first);
          const KeyBlocks blocks = key_blocks(band_of(p), first, rows, p.seqlen_kv, block_kv);
          for (std::int64_t block = 0; block * block_kv < p.seqlen_kv; ++block) {
            bool whole = (block + 1) * block_kv <= p.seqlen_kv;
            std::int64_t begin = p.seqlen_kv, end = 0;  // all keys between are worked through
            for (std::int64_t row = first; row < first + rows; ++row) {
              const KeyRange keys = visible_keys(p, row);
              if (keys.begin < keys.end) {
                begin = std::min(begin, keys.begin);
                end = std::max(end, keys.end);
              }
              whole = whole && keys.begin <= block * block_kv && (block + 1) * block_kv <= keys.end;
            }
            const bool needed = begin < (block + 1) * block_kv && block * block_kv < end;
            ASSERT_EQ(blocks.begin <= block && block < blocks.end, needed)
                << case_id("", p) << " row " << first << " block " << block;
            if (!needed) continue;
            ASSERT_EQ(blocks.whole_begin <= block && block < blocks.whole_end, whole)
                << case_id("", p) << " row " << first << " block " << block;
          }
        }
      }
    }
  }
}

// Bands of up to 2^29 rows and keys: the sums on the way stay within 32 bits.
TEST(KeyBlocks, AreTheSameIn32Bits) {
  std::mt19937_64 bits(3);
  const auto below = [&](std::int64_t end) {
    return static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(end));
  };
  const auto length = [&] { return 1 + below(std::int64_t{1} << (1 + below(29))); };
  constexpr std::int64_t kMost = std::int64_t{1} << 29;
  for (int i = 0; i < 200'000; ++i) {
    const std::int64_t seqlen_q = i % 8 == 0 ? kMost : length();
    const std::int64_t seqlen_kv = i % 8 <= 1 ? kMost : length();
    const Align align = below(2) == 0 ? Align::bottom_right : Align::top_left;
    const auto kind = std::array{MaskKind::none, MaskKind::causal, MaskKind::window}[i % 3U];
    const auto side = [&] { return below(4) == 0 ? kUnbounded : length() - 1; };
    const Problem p =
        problem(seqlen_q, seqlen_kv,
                kind == MaskKind::window ? Mask{kind, align, side(), side()} : Mask{kind, align});
    const Band band = band_of(p);
    const std::int64_t first_row = below(seqlen_q);
    const std::int64_t rows = std::min(1 + below(256), seqlen_q - first_row);
    const std::int64_t block_kv = 1 + below(256);
    const KeyBlocks wide = key_blocks(band, first_row, rows, seqlen_kv, block_kv);
    const auto narrow = [](std::int64_t value) { return static_cast<int>(value); };
    const BasicKeyBlocks<int> small =
        key_blocks<int>(narrow(band.first), narrow(band.last), narrow(first_row), narrow(rows),
                        narrow(seqlen_kv), narrow(block_kv));
    ASSERT_TRUE(small.begin == wide.begin && small.end == wide.end &&
                small.whole_begin == wide.whole_begin && small.whole_end == wide.whole_end)
        << case_id("", p) << " row " << first_row << " block of " << block_kv;
  }
}

TEST(QueryRows, SeeSomeOfTheKeys) {
  for (const Problem& p : problems()) {
    for (const std::int64_t keys : {1, 16, 64}) {
      for (std::int64_t first = 0; first < p.seqlen_kv; first += keys) {
        const std::int64_t count = std::min(keys, p.seqlen_kv - first);
        const QueryRows rows = query_rows(band_of(p), first, count, p.seqlen_q);
        for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
          const KeyRange seen = visible_keys(p, row);
          const bool sees = std::max(seen.begin, first) < std::min(seen.end, first + count);
          ASSERT_EQ(rows.begin <= row && row < rows.end, sees)
              << case_id("", p) << " row " << row << " key " << first;
        }
      }
    }
  }
}

TEST(RowBand, IsWhatARowSees) {
  for (const Problem& p : problems()) {
    for (std::int64_t first = 0; first < p.seqlen_q; first += 16) {
      const RowBand band = row_band(band_of(p), first, 16, p.seqlen_kv);
      for (std::int64_t r = 0; r < std::min<std::int64_t>(16, p.seqlen_q - first); ++r) {
        const KeyRange keys = visible_keys(p, first + r);
        for (std::int64_t key = 0; key < p.seqlen_kv; ++key) {
          ASSERT_EQ(band.begin + r <= key && key < band.end + r,
                    keys.begin <= key && key < keys.end)
              << case_id("", p) << " row " << first + r << " key " << key;
        }
      }
      const std::int64_t rows = std::min<std::int64_t>(16, p.seqlen_q - first);
      for (std::int64_t key = 0; key < p.seqlen_kv; key += 16) {
        const bool all = visible_keys(p, first).end >= key + 16 &&
                         visible_keys(p, first + rows - 1).begin <= key;
        ASSERT_EQ(sees_all(band, static_cast<int>(rows), static_cast<int>(key), 16,
                           static_cast<int>(p.seqlen_kv)),
                  all)
            << case_id("", p) << " row " << first << " key " << key;
      }
    }
  }
}

// 2^30 queries and keys, the most that 32 bits count with room for a tile.
TEST(RowBand, FitsInto32BitsForLongRows) {
  constexpr std::int64_t kLong = std::int64_t{1} << 30;
  const Problem p = problem(kLong, kLong, {MaskKind::window, Align::bottom_right, 100, 7});
  const RowBand last = row_band(band_of(p), kLong - 128, 128, kLong);
  EXPECT_EQ(last.begin, kLong - 228);
  EXPECT_EQ(last.end, kLong - 120);
  const Problem full = problem(kLong, 1, {});
  EXPECT_EQ(row_band(band_of(full), kLong - 128, 128, 1).begin, -128);
  EXPECT_EQ(row_band(band_of(full), kLong - 128, 128, 1).end, 1);
}

}  // namespace
}  // namespace rooflash
