// The Hopper families' pipeline on the CPU against fp64, with both softmaxes: where rf keeps a
// reference, and where rows have to do a block again. The tiles are the tests' own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "common/hopper/host_forward.hpp"
#include "common/two_level_memory.hpp"
#include "fa3/config.hpp"
#include "rf/config.hpp"
#include "rf/host_softmax.hpp"

namespace rooflash::hopper {
namespace {

constexpr std::int64_t kSram = 227L << 10U;
constexpr Config kTiles[] = {
    {64, 2, 64, 2, 2, false},
    {64, 3, 32, 1, 4, false},
};
constexpr float kScale = 8;  // of q, that the softmax scale of head dim 64 takes away

// One head. Values are set by (row, column) and rounded to the dtype.
struct Case {
  using Values = std::function<double(std::int64_t, std::int64_t)>;

  Case(DType dtype, std::int64_t seqlen_q, std::int64_t seqlen_kv, const Values& q_of,
       const Values& k_of) {
    p.dtype = dtype;
    p.seqlen_q = seqlen_q;
    p.seqlen_kv = seqlen_kv;
    q = filled(seqlen_q, q_of);
    k = filled(seqlen_kv, k_of);
    v = filled(seqlen_kv, [](std::int64_t key, std::int64_t column) {
      return static_cast<double>((key * 5 + column) % 7) - 3;
    });
    o.resize(q.size());
    lse.resize(static_cast<std::size_t>(seqlen_q));
  }

  std::vector<float> filled(std::int64_t rows, const Values& value_of) const {
    std::vector<float> values;
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < p.headdim; ++c) {
        values.push_back(round_to(p.dtype, static_cast<float>(value_of(r, c))));
      }
    }
    return values;
  }

  ForwardCounts run(const Softmax& softmax, const Config& config) {
    std::fill(o.begin(), o.end(), std::numeric_limits<float>::quiet_NaN());
    std::fill(lse.begin(), lse.end(), std::numeric_limits<float>::quiet_NaN());
    TwoLevelMemory memory(kSram);
    return forward(p, {q.data(), k.data(), v.data(), o.data(), lse.data()},
                   choose_tile(p, config, kSram), config, softmax, memory);
  }

  void expect_row(std::int64_t row) const {
    const KeyRange keys = visible_keys(p, row);
    std::vector<double> scores;
    double largest = -INFINITY;
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      double dot = 0;
      for (std::int64_t c = 0; c < p.headdim; ++c) dot += double{at(q, row, c)} * at(k, key, c);
      scores.push_back(dot * softmax_scale(p));
      largest = std::max(largest, scores.back());
    }
    double sum = 0;
    std::vector<double> weighted(static_cast<std::size_t>(p.headdim));
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      const double weight = std::exp(scores[static_cast<std::size_t>(key - keys.begin)] - largest);
      sum += weight;
      for (std::int64_t c = 0; c < p.headdim; ++c) {
        weighted[static_cast<std::size_t>(c)] += weight * at(v, key, c);
      }
    }
    const bool empty = scores.empty();
    const float got = lse[static_cast<std::size_t>(row)];
    if (empty) {
      ASSERT_EQ(got, -INFINITY) << "row " << row;
    } else {
      const double expected = largest + std::log(sum);
      ASSERT_NEAR(got, expected, 3e-5 + 2e-6 * std::abs(expected)) << "row " << row;
    }
    // Half a unit of the weights, whose values reach 3, and of O.
    const double tolerance = p.dtype == DType::bf16 ? 0.02 : 0.003;
    for (std::int64_t c = 0; c < p.headdim; ++c) {
      const double expected = empty ? 0 : weighted[static_cast<std::size_t>(c)] / sum;
      ASSERT_NEAR(at(o, row, c), expected, tolerance) << "row " << row << " column " << c;
    }
  }

  void expect_all() const {
    for (std::int64_t row = 0; row < p.seqlen_q; ++row) expect_row(row);
  }

  float at(const std::vector<float>& values, std::int64_t row, std::int64_t column) const {
    return values[static_cast<std::size_t>(row * p.headdim + column)];
  }

  Problem p;
  std::vector<float> q, k, v, o, lse;
};

// Scores that the key alone sets, in natural units.
Case by_key(DType dtype, std::int64_t seqlen_q, std::int64_t seqlen_kv,
            const std::function<double(std::int64_t)>& score_of) {
  return Case(
      dtype, seqlen_q, seqlen_kv,
      [](std::int64_t, std::int64_t c) { return c == 0 ? kScale : 0.0; },
      [&](std::int64_t key, std::int64_t c) { return c == 0 ? score_of(key) : 0.0; });
}

// Scores of standard deviation `spread`.
Case random_case(DType dtype, std::int64_t seqlen_q, std::int64_t seqlen_kv, double spread) {
  std::mt19937 bits(7);
  const auto normal = [&](double scale) {
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += static_cast<double>(bits()) / 4294967296.0;
    return scale * sum;
  };
  return Case(
      dtype, seqlen_q, seqlen_kv, [&](std::int64_t, std::int64_t) { return normal(spread); },
      [&](std::int64_t, std::int64_t) { return normal(1); });
}

// Runs the exact softmax and then the lazy one on every tile, and checks all rows; counts of the
// lazy.
ForwardCounts expect_right(Case c) {
  ForwardCounts total;
  for (const Config& config : kTiles) {
    c.run(Softmax(), config);
    c.expect_all();
    const ForwardCounts counts = c.run(rf::LazySoftmax(c.p.dtype), config);
    c.expect_all();
    total.exact += counts.exact;
    total.fast += counts.fast;
    total.replayed_rows += counts.replayed_rows;
  }
  return total;
}

constexpr DType kDTypes[] = {DType::bf16, DType::fp16};

// Of all rows but one.
void expect_same_bits(const Case& one, const Case& other, std::int64_t except) {
  const auto same = [](const float* a, const float* b, std::size_t count) {
    return std::memcmp(a, b, count * sizeof(float)) == 0;
  };
  const auto width = static_cast<std::size_t>(one.p.headdim);
  for (std::size_t row = 0; row < one.lse.size(); ++row) {
    if (static_cast<std::int64_t>(row) == except) continue;
    ASSERT_TRUE(same(&one.lse[row], &other.lse[row], 1)) << "row " << row;
    ASSERT_TRUE(same(&one.o[row * width], &other.o[row * width], width)) << "row " << row;
  }
}

TEST(LazySoftmax, OrdinaryScoresAreNeverDoneAgain) {
  for (const DType dtype : kDTypes) {
    const ForwardCounts counts = expect_right(random_case(dtype, 130, 700, 1));
    EXPECT_GT(counts.fast, 4 * counts.exact);
    EXPECT_EQ(counts.replayed_rows, 0);
  }
}

// Keys run from last to first, so the first ones come late. bf16 has room for 2^64, fp16 for 2^15.
TEST(LazySoftmax, LateSpikes) {
  const auto replayed_rows = [](DType dtype, double height) {
    return expect_right(by_key(dtype, 20, 700,
                               [height](std::int64_t key) { return key == 5 ? height : 0.0; }))
        .replayed_rows;
  };
  EXPECT_EQ(replayed_rows(DType::bf16, 44), 0);       // 2^63.5
  EXPECT_EQ(replayed_rows(DType::bf16, 45), 2 * 20);  // 2^64.9: once on each tile
  EXPECT_EQ(replayed_rows(DType::bf16, 100), 2 * 20);
  EXPECT_EQ(replayed_rows(DType::fp16, 10), 0);       // 2^14.4
  EXPECT_EQ(replayed_rows(DType::fp16, 11), 2 * 20);  // 2^15.9
  EXPECT_EQ(replayed_rows(DType::fp16, 40), 2 * 20);
}

// Row 20 of 64 alone sees the spike: it is the only one with a second column. The others of its
// warp have outgrown their reference too, by no more than there is room for, and keep it.
TEST(LazySoftmax, OnlyTheRowsThatOutgrowDoABlockAgain) {
  for (const DType dtype : kDTypes) {
    const auto with_spike = [&](double height) {
      return Case(
          dtype, 64, 700,
          [](std::int64_t row, std::int64_t column) {
            return column == 0 || (column == 1 && row == 20) ? kScale : 0.0;
          },
          [&](std::int64_t key, std::int64_t column) {
            if (column == 0) return key < 600 ? 6.5 + static_cast<double>(key % 7) / 8 : 0.0;
            return column == 1 && key == 5 ? height : 0.0;
          });
    };
    EXPECT_EQ(expect_right(with_spike(0)).replayed_rows, 0);
    EXPECT_EQ(expect_right(with_spike(100)).replayed_rows, 2);  // once on each tile
    for (const Config& config : kTiles) {
      Case flat = with_spike(0);
      Case spiked = with_spike(100);
      flat.run(rf::LazySoftmax(dtype), config);
      spiked.run(rf::LazySoftmax(dtype), config);
      expect_same_bits(flat, spiked, 20);
    }
  }
}

TEST(LazySoftmax, GrowingScores) {
  for (const DType dtype : kDTypes) {
    const auto growing = [&](double step) {
      return expect_right(by_key(
          dtype, 16, 700, [&](std::int64_t key) { return step * static_cast<double>(700 - key); }));
    };
    const ForwardCounts steep = growing(1);         // 64 in a block: 92 in log2
    EXPECT_EQ(steep.replayed_rows, 2 * 16);         // once on each tile, then they go fa3's way
    const ForwardCounts flat = growing(0.0078125);  // 5.5 in all
    EXPECT_EQ(flat.replayed_rows, 0);
    // The other way all later weights are small.
    expect_right(by_key(dtype, 16, 700, [](std::int64_t key) { return static_cast<double>(key); }));
  }
}

TEST(LazySoftmax, LargeScores) {
  for (const DType dtype : kDTypes) {
    std::int64_t before = -1;
    for (const double spread : {10.0, 30.0, 100.0}) {
      const ForwardCounts counts = expect_right(random_case(dtype, 70, 700, spread));
      EXPECT_GE(counts.replayed_rows, before) << spread;
      before = counts.replayed_rows;
    }
    EXPECT_GT(before, 0);
  }
  EXPECT_EQ(expect_right(random_case(DType::bf16, 70, 700, 10)).replayed_rows, 0);
  EXPECT_GT(expect_right(random_case(DType::fp16, 70, 700, 10)).replayed_rows, 0);
}

TEST(LazySoftmax, StronglyNegativeScores) {
  for (const DType dtype : kDTypes) {
    const ForwardCounts counts = expect_right(by_key(dtype, 20, 700, [](std::int64_t key) {
      return -2048.0 + 2 * static_cast<double>(key % 3);
    }));
    EXPECT_EQ(counts.replayed_rows, 0);
  }
}

// A lane's sum of a block may come near the edge in every block: over many blocks more comes
// together, and a float still holds it. With 64 keys a lane has 16 of them, with 32 it has 8.
TEST(LazySoftmax, LongRowsNearTheEdgeOfTheRoom) {
  constexpr std::int64_t kKeys = 20'480;
  const auto grown_by = [](DType dtype, double growth) {
    const ForwardCounts counts = expect_right(by_key(
        dtype, 1, kKeys, [&](std::int64_t key) { return key < kKeys - 128 ? growth : 0.0; }));
    EXPECT_GT(counts.fast, 900);
    return counts.replayed_rows;
  };
  EXPECT_EQ(grown_by(DType::bf16, 41), 0);   // 16 of them: 2^63.2
  EXPECT_EQ(grown_by(DType::bf16, 42), 1);   // 2^64.6, 8 of them: 2^63.6
  EXPECT_EQ(grown_by(DType::fp16, 7.5), 0);  // 2^14.8
  EXPECT_EQ(grown_by(DType::fp16, 8), 1);    // 2^15.5, 8 of them: 2^14.5
}

// What the room of bf16 leaves: weights of 2^60 and values of 2^40 make sums that a float holds, to
// the last bit those of small values.
TEST(LazySoftmax, LargeValuesHaveRoom) {
  Case c = by_key(DType::bf16, 20, 700, [](std::int64_t key) {
    return key < 572 ? 40.5 + static_cast<double>(key % 3) / 2 : 0.0;
  });
  for (const Config& config : kTiles) {
    Case large = c;
    for (float& value : large.v) value *= 0x1p40F;
    EXPECT_EQ(c.run(rf::LazySoftmax(DType::bf16), config).replayed_rows, 0);
    large.run(rf::LazySoftmax(DType::bf16), config);
    c.expect_all();
    for (float& value : large.o) value *= 0x1p-40F;
    expect_same_bits(c, large, -1);
  }
}

// The largest weight is a power of two, which loses nothing where weights are rounded.
TEST(LazySoftmax, RowsOfOneKeyAreThatKey) {
  for (const DType dtype : kDTypes) {
    Case c = random_case(dtype, 20, 1, 3);
    for (const Config& config : kTiles) {
      c.run(rf::LazySoftmax(dtype), config);
      c.expect_all();
      for (std::int64_t row = 0; row < 20; ++row) {
        for (std::int64_t column = 0; column < 64; ++column) {
          ASSERT_EQ(c.at(c.o, row, column), c.at(c.v, 0, column)) << row << " " << column;
        }
      }
    }
  }
}

TEST(LazySoftmax, RowsWithNoKey) {
  for (const DType dtype : kDTypes) {
    Case c = random_case(dtype, 300, 170, 1);
    c.p.mask.kind = MaskKind::causal;
    expect_right(c);
    c.p.mask = {MaskKind::window, Align::top_left, 20, 3};
    expect_right(c);
  }
}

// One key less than queries: the first row of a warpgroup sees nothing of the blocks that need a
// mask. It does the block after them again, unless that is in a stage with one of them.
TEST(LazySoftmax, RowsThatFirstSeeABlockWithoutMask) {
  for (const double score : {-120.0, 0.0, 120.0}) {
    Case c = by_key(DType::bf16, 321, 320, [&](std::int64_t) { return score; });
    c.p.mask.kind = MaskKind::causal;
    // Warpgroups 2 and 4 with two blocks of 64 a stage, 1 to 4 with blocks of 32.
    EXPECT_EQ(expect_right(c).replayed_rows, 2 + 4);
  }
}

// Scores of -inf against a reference of -inf make NaN, and a block of them leaves it at that.
TEST(LazySoftmax, RowsThatFirstSeeScoresOfMinusInfinity) {
  for (const DType dtype : kDTypes) {
    Case c = by_key(dtype, 321, 320, [](std::int64_t key) {
      return key >= 64 && key < 140 ? -std::numeric_limits<double>::infinity() : 2.0;
    });
    c.p.mask.kind = MaskKind::causal;
    EXPECT_GT(expect_right(c).replayed_rows, 2 + 4);
  }
}

TEST(HopperForward, NanStaysInItsRow) {
  for (const DType dtype : kDTypes) {
    const rf::LazySoftmax lazy(dtype);
    const Softmax exact;
    for (const Softmax* softmax : {static_cast<const Softmax*>(&lazy), &exact}) {
      Case without = random_case(dtype, 130, 400, 10);
      Case c = without;
      constexpr std::int64_t kRow = 21;
      c.q[kRow * 64 + 9] = std::numeric_limits<float>::quiet_NaN();
      for (const Config& config : kTiles) {
        without.run(*softmax, config);
        without.expect_all();
        c.run(*softmax, config);
        expect_same_bits(c, without, kRow);
        EXPECT_TRUE(std::isnan(c.lse[kRow]));
        for (std::int64_t column = 0; column < 64; ++column) {
          EXPECT_TRUE(std::isnan(c.at(c.o, kRow, column)));
        }
      }
    }
  }
}

TEST(HopperForward, RepeatsBitByBit) {
  for (const DType dtype : kDTypes) {
    Case c = random_case(dtype, 130, 400, 30);
    for (const Config& config : kTiles) {
      const ForwardCounts counts = c.run(rf::LazySoftmax(dtype), config);
      const std::vector<float> o = c.o, lse = c.lse;
      EXPECT_EQ(c.run(rf::LazySoftmax(dtype), config).replayed_rows, counts.replayed_rows);
      EXPECT_EQ(std::memcmp(o.data(), c.o.data(), o.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(lse.data(), c.lse.data(), lse.size() * sizeof(float)), 0);
    }
  }
}

// Blocks of 64 keys, two a stage. The first block goes the exact way, and so does what shares a
// stage with it or with one that needs a mask.
TEST(HopperForward, WholeStagesGoTheFastWay) {
  const auto expect_counts = [](Case c, std::int64_t exact, std::int64_t fast) {
    const std::int64_t warps = c.p.seqlen_q / 16;
    const ForwardCounts counts = c.run(rf::LazySoftmax(c.p.dtype), kTiles[0]);
    EXPECT_EQ(counts.exact, exact * warps);
    EXPECT_EQ(counts.fast, fast * warps);
  };
  expect_counts(random_case(DType::bf16, 128, 512, 1), 2, 6);
  expect_counts(random_case(DType::bf16, 128, 320, 1), 1, 4);
  expect_counts(random_case(DType::bf16, 128, 300, 1), 1, 4);
  expect_counts(random_case(DType::bf16, 128, 64, 1), 1, 0);
  // Keys from 129 on are seen, all rows see those from 192 to 448: blocks 3 to 6.
  Case window = random_case(DType::bf16, 64, 512, 1);
  window.p.mask = {MaskKind::window, Align::bottom_right, 319, 0};
  expect_counts(window, 4, 2);
}

// Each block is a stage: all but the first.
TEST(HopperForward, StagesOfOneBlock) {
  const ForwardCounts counts =
      random_case(DType::bf16, 192, 512, 1).run(rf::LazySoftmax(DType::bf16), kTiles[1]);
  EXPECT_EQ(counts.exact, 12 * 1);
  EXPECT_EQ(counts.fast, 12 * 15);
}

// Causal, 128 queries and keys: the upper warpgroup skips the second key block, both load it.
TEST(HopperForward, WarpgroupsSkipBlocks) {
  Case c = random_case(DType::bf16, 128, 128, 1);
  c.p.mask.kind = MaskKind::causal;
  const ForwardCounts counts = c.run(rf::LazySoftmax(DType::bf16), kTiles[0]);
  EXPECT_EQ(counts.exact, 4 * 1 + 4 * 2);
  EXPECT_EQ(counts.fast, 0);
  const Traffic t = traffic(c.p, {128, 64}, kTiles[0], 3);
  EXPECT_EQ(t.read_bytes(), 3 * 128 * 128);
  EXPECT_EQ(t.write_bytes(), 128 * 128 + 128 * 4);
  EXPECT_EQ(t.stages[0].exp_ops, 3.0 * 64 * 64);
  EXPECT_EQ(t.stages[0].tensor_ops, 3.0 * 64 * 64 * 4 * 64);
  EXPECT_EQ(t.stages[0].path, TensorPath::wgmma);
  EXPECT_EQ(t.stages[0].smem_bytes, 0);
}

// Query tiles past the last key read their rows of Q and no key.
TEST(HopperForward, EmptyRowsReadTheirQueriesAlone) {
  Problem p;
  p.seqlen_q = 256;
  p.seqlen_kv = 64;
  p.mask.kind = MaskKind::causal;
  const Traffic t = traffic(p, {128, 64}, kTiles[0], 3);
  EXPECT_EQ(t.streams[0].read_bytes, 256 * 128);
  EXPECT_EQ(t.streams[1].read_bytes, 64 * 128);
  EXPECT_EQ(t.stages[0].exp_ops, 64 * 64);
}

TEST(Limits, SayWhatIsTooLarge) {
  Problem p;
  EXPECT_EQ(limits("fa3", p, kTiles[0]), "");
  p.seqlen_q = std::int64_t{1} << 29;
  EXPECT_EQ(limits("fa3", p, kTiles[0]), "");
  ++p.seqlen_q;
  EXPECT_EQ(limits("fa3", p, kTiles[0]), "fa3 takes at most 2^29 queries and keys");
  p.seqlen_q = 128;
  p.batch = std::int64_t{1} << 31;
  EXPECT_EQ(limits("fa3", p, kTiles[0]), "fa3 takes at most 2^31 - 1 query tiles");
  p.batch = 1;
  p.headdim = 60;
  EXPECT_EQ(limits("fa3", p, kTiles[0]),
            "fa3 loads 16 bytes at a time: head dims must be multiples of 8");
}

// Of each family and head dim, whatever the mask and length.
TEST(CompiledTiles, TheSmallestHeadDimThatHoldsTheProblemIsTaken) {
  for (const auto tiles :
       {std::span<const CompiledTile>(fa3::kTiles), std::span<const CompiledTile>(rf::kTiles)}) {
    for (std::int64_t headdim = 8; headdim <= 256; headdim += 8) {
      int smallest = 256;
      for (const CompiledTile& tile : tiles) {
        if (tile.config.headdim >= headdim) smallest = std::min(smallest, tile.config.headdim);
      }
      for (const MaskKind mask : {MaskKind::none, MaskKind::causal, MaskKind::window}) {
        for (const std::int64_t seqlen : {1, 1024, 100'000}) {
          Problem p;
          p.headdim = 8;
          p.headdim_v = headdim;
          p.seqlen_q = p.seqlen_kv = seqlen;
          p.mask.kind = mask;
          EXPECT_EQ(choose_with_split(tiles, p).config.headdim, smallest);
        }
      }
    }
  }
}

// CTAs pair up where keys are many, and rows enough for both.
TEST(CompiledTiles, LongKeysTakePairsAtHeadDim256) {
  Problem p;
  p.headdim = p.headdim_v = 256;
  p.batch = 32;
  p.heads_q = p.heads_kv = 8;
  const auto pairs = [&](std::int64_t seqlen, MaskKind mask) {
    p.seqlen_q = p.seqlen_kv = seqlen;
    p.mask = {.kind = mask};
    const CompiledTile& tile = choose_with_split(fa3::kTiles, p);
    EXPECT_EQ(choose_with_split(rf::kTiles, p).config.pair, tile.config.pair);
    return tile.config.pair;
  };
  EXPECT_FALSE(pairs(512, MaskKind::none));
  EXPECT_TRUE(pairs(1024, MaskKind::none));
  EXPECT_FALSE(pairs(1024, MaskKind::causal));
  EXPECT_TRUE(pairs(2048, MaskKind::causal));
  EXPECT_FALSE(pairs(1100, MaskKind::none));
  EXPECT_TRUE(pairs(4224, MaskKind::causal));
  EXPECT_EQ(describe(p, choose_with_split(fa3::kTiles, p)),
            "128 queries x 64 keys, 2 stages, CTAs in pairs; two CTAs share K and V");
  // Rows that see no key, and a window.
  p.seqlen_kv = 40;
  EXPECT_FALSE(choose_with_split(fa3::kTiles, p).config.pair);
  p.seqlen_kv = 1 << 20;
  p.mask = {MaskKind::window, Align::bottom_right, 900, 0};
  EXPECT_FALSE(choose_with_split(fa3::kTiles, p).config.pair);
  p.headdim = p.headdim_v = 128;
  p.mask = {};
  EXPECT_FALSE(choose_with_split(fa3::kTiles, p).config.pair);
}

// Keys are split where query tiles are fewer than SMs, heads packed where that makes them fewer.
TEST(CompiledTiles, ShortQueriesTakeSplitTiles) {
  Problem p;
  p.headdim = p.headdim_v = 128;
  p.batch = 1;
  p.heads_q = 32;
  p.heads_kv = 8;
  p.seqlen_q = 1;
  p.seqlen_kv = 1 << 16;
  EXPECT_EQ(describe(p, choose_with_split(fa3::kTiles, p)),
            "192 queries x 64 keys, 2 stages of 2 blocks, keys in parts: 16, heads in a tile: 4; "
            "short queries");
  EXPECT_TRUE(choose_with_split(rf::kTiles, p).config.split);
  EXPECT_FALSE(rf::is_lazy(choose_with_split(rf::kTiles, p).config));
  // Heads are packed where there are tiles enough, too.
  p.batch = 64;
  EXPECT_EQ(describe(p, choose_with_split(fa3::kTiles, p)),
            "192 queries x 64 keys, 2 stages of 2 blocks, keys in parts: 1, heads in a tile: 4; "
            "short queries");
  // One query of each head: nothing to pack.
  p.heads_kv = 32;
  EXPECT_FALSE(choose_with_split(fa3::kTiles, p).config.split);
  // Long queries, and short keys.
  p.batch = 1;
  p.heads_kv = 8;
  p.seqlen_q = 4096;
  EXPECT_FALSE(choose_with_split(fa3::kTiles, p).config.split);
  p.seqlen_q = 1;
  p.seqlen_kv = 300;
  EXPECT_FALSE(choose_with_split(fa3::kTiles, p).config.split);
}

}  // namespace
}  // namespace rooflash::hopper
