// The Hopper families' pipeline on the CPU against fp64, with both softmaxes: where rf keeps a
// reference, and where it has to do a block again. The tiles are the tests' own.
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
    total.replayed += counts.replayed;
  }
  return total;
}

constexpr DType kDTypes[] = {DType::bf16, DType::fp16};

TEST(LazySoftmax, OrdinaryScoresAreNeverDoneAgain) {
  for (const DType dtype : kDTypes) {
    const ForwardCounts counts = expect_right(random_case(dtype, 130, 700, 1));
    EXPECT_GT(counts.fast, 4 * counts.exact);
    EXPECT_EQ(counts.replayed, 0);
  }
}

// Keys run from last to first, so the first ones come late. bf16 has room for 2^96, fp16 for 2^15.
TEST(LazySoftmax, LateSpikes) {
  const auto spike = [](double height) {
    return [height](std::int64_t key) { return key == 5 ? height : 0.0; };
  };
  EXPECT_EQ(expect_right(by_key(DType::bf16, 20, 700, spike(40))).replayed, 0);
  // Both warps, once on each tile.
  EXPECT_EQ(expect_right(by_key(DType::bf16, 20, 700, spike(100))).replayed, 4);
  EXPECT_EQ(expect_right(by_key(DType::fp16, 20, 700, spike(8))).replayed, 0);
  EXPECT_EQ(expect_right(by_key(DType::fp16, 20, 700, spike(40))).replayed, 4);
}

TEST(LazySoftmax, OnlyTheWarpsThatOutgrowDoABlockAgain) {
  // Row 20 of 64 alone sees the spike: it is the only one with a second column.
  Case c(
      DType::bf16, 64, 700,
      [](std::int64_t row, std::int64_t column) {
        return column == 0 || (column == 1 && row == 20) ? kScale : 0.0;
      },
      [](std::int64_t key, std::int64_t column) { return column == 1 && key == 5 ? 100.0 : 0.0; });
  EXPECT_EQ(expect_right(c).replayed, 2);  // once on each tile
}

TEST(LazySoftmax, GrowingScores) {
  for (const DType dtype : kDTypes) {
    const auto growing = [&](double step) {
      return expect_right(by_key(
          dtype, 16, 700, [&](std::int64_t key) { return step * static_cast<double>(700 - key); }));
    };
    const ForwardCounts steep = growing(1);  // 64 in a block: 92 in log2
    EXPECT_GT(steep.replayed, 4);
    EXPECT_LE(steep.replayed, steep.fast);
    const ForwardCounts flat = growing(0.0078125);  // 5.5 in all
    EXPECT_EQ(flat.replayed, 0);
    // The other way all later weights are small.
    expect_right(by_key(dtype, 16, 700, [](std::int64_t key) { return static_cast<double>(key); }));
  }
}

TEST(LazySoftmax, LargeScores) {
  for (const DType dtype : kDTypes) {
    std::int64_t before = -1;
    for (const double spread : {10.0, 30.0, 100.0}) {
      const std::int64_t replayed = expect_right(random_case(dtype, 70, 700, spread)).replayed;
      EXPECT_GE(replayed, before) << spread;
      before = replayed;
    }
    EXPECT_GT(before, 0);
  }
  EXPECT_EQ(expect_right(random_case(DType::bf16, 70, 700, 10)).replayed, 0);
  EXPECT_GT(expect_right(random_case(DType::fp16, 70, 700, 10)).replayed, 0);
}

TEST(LazySoftmax, StronglyNegativeScores) {
  for (const DType dtype : kDTypes) {
    const ForwardCounts counts = expect_right(by_key(dtype, 20, 700, [](std::int64_t key) {
      return -2048.0 + 2 * static_cast<double>(key % 3);
    }));
    EXPECT_EQ(counts.replayed, 0);
  }
}

// A thread's sums may each come near 2^96 without a block being done again: over many blocks more
// comes together, and a float still holds it.
TEST(LazySoftmax, LongRowsNearTheEdgeOfTheRoom) {
  constexpr std::int64_t kKeys = 20'480;  // 320 blocks of 64
  const ForwardCounts counts = expect_right(by_key(DType::bf16, 1, kKeys, [](std::int64_t key) {
    return key < kKeys - 128 ? 62.0 : 0.0;  // 2^89.4
  }));
  EXPECT_EQ(counts.replayed, 0);
  EXPECT_GT(counts.fast, 600);
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

// One key less than queries: the first row of a warpgroup sees nothing of its only masked block,
// and the exact way goes on for one more.
TEST(LazySoftmax, RowsThatFirstSeeABlockWithoutMask) {
  Case c = by_key(DType::bf16, 321, 320, [](std::int64_t) { return 120.0; });
  c.p.mask.kind = MaskKind::causal;
  const ForwardCounts counts = expect_right(c);
  EXPECT_GT(counts.fast, 0);
  EXPECT_EQ(counts.replayed, 0);
}

TEST(LazySoftmax, NanStaysInItsRow) {
  for (const DType dtype : kDTypes) {
    Case c = random_case(dtype, 130, 400, 3);
    constexpr std::int64_t kRow = 21;
    c.q[kRow * 64 + 9] = std::numeric_limits<float>::quiet_NaN();
    for (const Config& config : kTiles) {
      c.run(rf::LazySoftmax(dtype), config);
      EXPECT_TRUE(std::isnan(c.lse[kRow]));
      for (std::int64_t column = 0; column < 64; ++column) {
        EXPECT_TRUE(std::isnan(c.at(c.o, kRow, column)));
      }
      for (std::int64_t row = 0; row < 130; ++row) {
        if (row != kRow) c.expect_row(row);
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
      EXPECT_EQ(c.run(rf::LazySoftmax(dtype), config).replayed, counts.replayed);
      EXPECT_EQ(std::memcmp(o.data(), c.o.data(), o.size() * sizeof(float)), 0);
      EXPECT_EQ(std::memcmp(lse.data(), c.lse.data(), lse.size() * sizeof(float)), 0);
    }
  }
}

// A tile of 128 queries; 512 keys in blocks of 64, two a stage. Each of the 8 warps goes the exact
// way in the first block and in the rest of its stage.
TEST(HopperForward, WholeStagesGoTheFastWay) {
  const ForwardCounts counts =
      random_case(DType::bf16, 128, 512, 1).run(rf::LazySoftmax(DType::bf16), kTiles[0]);
  EXPECT_EQ(counts.exact, 8 * 2);
  EXPECT_EQ(counts.fast, 8 * 6);
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
          EXPECT_EQ(tiles[choose(tiles, p)].config.headdim, smallest);
        }
      }
    }
  }
}

TEST(CompiledTiles, TheFirstThatServesIsTaken) {
  constexpr CompiledTile kTwo[] = {{{64, 2, 128, 1, 2, false}, unmasked, "no mask"},
                                   {{64, 3, 64, 2, 2, false}, any, "masked"}};
  Problem p;
  EXPECT_EQ(describe(kTwo[choose(kTwo, p)]), "128 queries x 128 keys, 2 stages; no mask");
  p.mask.kind = MaskKind::window;
  EXPECT_EQ(describe(kTwo[choose(kTwo, p)]), "192 queries x 64 keys, 2 stages of 2 blocks; masked");
}

}  // namespace
}  // namespace rooflash::hopper
