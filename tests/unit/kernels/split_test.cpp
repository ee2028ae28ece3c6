// The Hopper pipeline with keys split into parts and heads packed into tiles, on the CPU: against
// fp64 and against the closed form of what it moves. The tiles are the tests' own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/hopper/host_forward.hpp"
#include "common/two_level_memory.hpp"
#include "rf/host_softmax.hpp"

namespace rooflash::hopper {
namespace {

constexpr std::int64_t kSram = 227L << 10U;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// As the lab's: two blocks a stage, one, and early release.
constexpr Config kTiles[] = {
    {.headdim = 64,
     .consumers = 2,
     .block_n = 64,
     .stage_blocks = 2,
     .stages = 2,
     .early_release = false,
     .split = true},
    {.headdim = 64,
     .consumers = 3,
     .block_n = 32,
     .stage_blocks = 1,
     .stages = 4,
     .early_release = false,
     .split = true},
    {.headdim = 64,
     .consumers = 2,
     .block_n = 64,
     .stage_blocks = 1,
     .stages = 2,
     .early_release = true,
     .split = true},
};
constexpr std::int64_t kSplits[] = {1, 2, 3, 7, 40};  // the last are more than there are stages

struct Sizes {
  std::int64_t batch, seqlen_q, seqlen_kv, heads_q, heads_kv, headdim, headdim_v;
};

struct Case {
  Case(DType dtype, const Sizes& s, const Mask& mask, double spread = 1) {
    p.dtype = dtype;
    p.batch = s.batch;
    p.seqlen_q = s.seqlen_q;
    p.seqlen_kv = s.seqlen_kv;
    p.heads_q = s.heads_q;
    p.heads_kv = s.heads_kv;
    p.headdim = s.headdim;
    p.headdim_v = s.headdim_v;
    p.mask = mask;
    std::mt19937 bits(11);
    const auto normal = [&](std::int64_t elements, double scale) {
      std::vector<float> values(static_cast<std::size_t>(elements));
      for (float& value : values) {
        double sum = -6;
        for (int i = 0; i < 12; ++i) sum += static_cast<double>(bits()) / 4294967296.0;
        value = round_to(dtype, static_cast<float>(scale * sum));
      }
      return values;
    };
    q = normal(q_elements(p), spread);
    k = normal(k_elements(p), 1);
    v = normal(v_elements(p), 1);
    o.resize(static_cast<std::size_t>(o_elements(p)));
    lse.resize(static_cast<std::size_t>(lse_elements(p)));
  }

  // Held to the closed form. Counts of blocks.
  ForwardCounts run(const Config& config, const Softmax& softmax, std::int64_t splits) {
    std::fill(o.begin(), o.end(), kNan);
    std::fill(lse.begin(), lse.end(), kNan);
    const Tile tile = choose_tile(p, config, kSram);
    TwoLevelMemory memory(kSram);
    const ForwardCounts counts = forward(p, {q.data(), k.data(), v.data(), o.data(), lse.data()},
                                         tile, config, softmax, memory, splits);
    const Traffic moved = traffic(p, tile, config, 3, splits);
    EXPECT_EQ(memory.read_bytes(), moved.read_bytes());
    EXPECT_EQ(memory.write_bytes(), moved.write_bytes());
    EXPECT_EQ(memory.slow_peak_bytes(),
              config.split ? splits * (o_elements(p) + lse_elements(p)) * 4 : 0);
    double staged = 0;
    for (const Stage& stage : moved.stages) staged += stage.sm_l2_bytes;
    EXPECT_EQ(staged, static_cast<double>(moved.read_bytes() + moved.write_bytes()));
    return counts;
  }

  float at(const std::vector<float>& values, std::int64_t batch, std::int64_t row,
           std::int64_t head, std::int64_t seqlen, std::int64_t heads, std::int64_t width,
           std::int64_t column) const {
    return values[static_cast<std::size_t>(((batch * seqlen + row) * heads + head) * width +
                                           column)];
  }

  // Of all rows, in the order of O and of LSE.
  struct Expected {
    std::vector<double> o, lse;
  };

  Expected reference() const {
    Expected result;
    result.o.resize(o.size());
    result.lse.resize(lse.size());
    for (std::int64_t batch = 0; batch < p.batch; ++batch) {
      for (std::int64_t head = 0; head < p.heads_q; ++head) {
        for (std::int64_t row = 0; row < p.seqlen_q; ++row) add_row(result, batch, head, row);
      }
    }
    return result;
  }

  void add_row(Expected& result, std::int64_t batch, std::int64_t head, std::int64_t row) const {
    const std::int64_t head_kv = head / (p.heads_q / p.heads_kv);
    const KeyRange keys = visible_keys(p, row);
    std::vector<double> scores;
    double largest = -INFINITY;
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      double dot = 0;
      for (std::int64_t c = 0; c < p.headdim; ++c) {
        dot += double{at(q, batch, row, head, p.seqlen_q, p.heads_q, p.headdim, c)} *
               at(k, batch, key, head_kv, p.seqlen_kv, p.heads_kv, p.headdim, c);
      }
      scores.push_back(dot * softmax_scale(p));
      largest = std::max(largest, scores.back());
    }
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - largest);
    result.lse[static_cast<std::size_t>((batch * p.heads_q + head) * p.seqlen_q + row)] =
        scores.empty() ? -INFINITY : largest + std::log(sum);
    double* const weighted = &result.o[static_cast<std::size_t>(
        ((batch * p.seqlen_q + row) * p.heads_q + head) * p.headdim_v)];
    for (std::int64_t key = keys.begin; key < keys.end; ++key) {
      const double weight = scores[static_cast<std::size_t>(key - keys.begin)] / sum;
      for (std::int64_t c = 0; c < p.headdim_v; ++c) {
        weighted[c] += weight * at(v, batch, key, head_kv, p.seqlen_kv, p.heads_kv, p.headdim_v, c);
      }
    }
  }

  // Rows with no key are 0 and -inf to the bit.
  void expect(const Expected& expected) const {
    for (std::size_t i = 0; i < lse.size(); ++i) {
      if (std::isinf(expected.lse[i])) {
        ASSERT_EQ(lse[i], -INFINITY) << i;
      } else {
        ASSERT_NEAR(lse[i], expected.lse[i], 3e-5 + 2e-6 * std::abs(expected.lse[i])) << i;
      }
    }
    const double tolerance = p.dtype == DType::bf16 ? 0.02 : 0.003;
    for (std::size_t i = 0; i < o.size(); ++i) {
      ASSERT_NEAR(o[i], expected.o[i], expected.o[i] == 0 ? 0 : tolerance) << i;
    }
  }

  Problem p;
  std::vector<float> q, k, v, o, lse;
};

Mask causal(Align align = Align::bottom_right) {
  return {MaskKind::causal, align};
}
Mask window(std::int64_t left, std::int64_t right, Align align = Align::bottom_right) {
  return {MaskKind::window, align, left, right};
}

// Odd lengths, unequal ones, groups, rows with no key, head dims that are padded.
TEST(SplitForward, IsRightAndMovesWhatTheClosedFormSays) {
  for (const Sizes& sizes : {Sizes{1, 1, 777, 4, 1, 64, 64},
                             {2, 77, 77, 2, 2, 64, 64},
                             {1, 130, 400, 2, 1, 56, 40},
                             {1, 300, 129, 1, 1, 64, 24},
                             {1, 70, 3, 3, 1, 8, 64}}) {
    for (const Mask& mask : {Mask{}, causal(), causal(Align::top_left), window(100, 0),
                             window(31, 64, Align::top_left), window(-1, 5)}) {
      for (const DType dtype : {DType::bf16, DType::fp16}) {
        Case c(dtype, sizes, mask, dtype == DType::bf16 ? 1 : 4);
        const Case::Expected expected = c.reference();
        for (const Config& config : kTiles) {
          for (const std::int64_t splits : kSplits) {
            SCOPED_TRACE(::testing::Message()
                         << sizes.seqlen_q << " x " << sizes.seqlen_kv << " mask "
                         << static_cast<int>(mask.kind) << " splits " << splits << " block "
                         << config.block_n << (dtype == DType::bf16 ? " bf16" : " fp16"));
            if (dtype == DType::bf16) {
              c.run(config, Softmax(), splits);
            } else {
              c.run(config, rf::LazySoftmax(dtype), splits);
            }
            c.expect(expected);
          }
        }
      }
    }
  }
}

// Groups of 1 to 64 heads, also one that is no power of two, which is not packed.
TEST(PackedForward, IsRightAndMovesWhatTheClosedFormSays) {
  for (const Sizes& sizes : {Sizes{1, 1, 700, 64, 1, 64, 64},
                             {2, 5, 300, 16, 2, 56, 40},
                             {1, 40, 25, 16, 2, 64, 24},
                             {2, 30, 130, 3, 1, 8, 64},
                             {1, 9, 200, 12, 1, 64, 64},
                             {1, 130, 130, 2, 2, 64, 64}}) {
    for (const Mask& mask : {Mask{}, causal(), window(40, 0), window(31, 64, Align::top_left)}) {
      Case c(DType::bf16, sizes, mask);
      const Case::Expected expected = c.reference();
      for (const Config& config : kTiles) {
        for (const std::int64_t splits : kSplits) {
          SCOPED_TRACE(::testing::Message()
                       << sizes.seqlen_q << " x " << sizes.seqlen_kv << " heads " << sizes.heads_q
                       << " mask " << static_cast<int>(mask.kind) << " splits " << splits
                       << " block " << config.block_n);
          c.run(config, rf::LazySoftmax(DType::bf16), splits);
          c.expect(expected);
        }
      }
    }
  }
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// One part has weight 1: O is rounded once, as without `split`.
TEST(SplitForward, OnePartChangesNoBit) {
  for (Config config : kTiles) {
    Case with(DType::bf16, {2, 130, 400, 2, 2, 64, 64}, causal(), 4);
    Case without = with;
    with.run(config, Softmax(), 1);
    config.split = false;
    without.run(config, Softmax(), 1);
    EXPECT_TRUE(same_bits(with.o, without.o));
    EXPECT_TRUE(same_bits(with.lse, without.lse));
  }
}

// Each part's first block goes the exact way, or with two blocks a stage the first stage.
TEST(SplitForward, EachPartBeginsExactly) {
  Case c(DType::bf16, {1, 192, 512, 1, 1, 64, 64}, Mask{});
  const rf::LazySoftmax lazy(DType::bf16);
  constexpr std::int64_t kWarps = 192 / 16;
  for (const std::int64_t splits : {1, 2, 3, 16, 40}) {
    const ForwardCounts counts = c.run(kTiles[1], lazy, splits);
    EXPECT_EQ(counts.exact, kWarps * std::min<std::int64_t>(splits, 16));
    EXPECT_EQ(counts.fast, kWarps * 16 - counts.exact);
  }
  for (const std::int64_t splits : {1, 2, 4, 7}) {
    const ForwardCounts counts = c.run(kTiles[0], lazy, splits);
    EXPECT_EQ(counts.exact, 2 * kWarps * std::min<std::int64_t>(splits, 4));
    EXPECT_EQ(counts.exact + counts.fast, kWarps * 8);
  }
}

// The weights of some parts are below what fp32 holds, beside others.
TEST(SplitForward, PartsFarApart) {
  for (const double spike : {300.0, -300.0}) {
    Case c(DType::bf16, {1, 20, 700, 1, 1, 64, 64}, Mask{});
    for (std::size_t i = 0; i < c.q.size(); i += 64) c.q[i] = 8;
    for (std::size_t i = 0; i < c.k.size(); i += 64) c.k[i] = 0;
    c.k[std::size_t{5} * 64] = static_cast<float>(spike);
    const Case::Expected expected = c.reference();
    for (const Config& config : kTiles) {
      for (const std::int64_t splits : kSplits) {
        c.run(config, Softmax(), splits);
        c.expect(expected);
        c.run(config, rf::LazySoftmax(DType::bf16), splits);
        c.expect(expected);
      }
    }
  }
}

// A row of scores that are all -inf in some parts, and then in all.
TEST(SplitForward, ScoresOfMinusInfinity) {
  for (const std::int64_t first : {0, 300}) {
    Case c(DType::bf16, {1, 20, 700, 1, 1, 64, 64}, Mask{});
    for (std::size_t i = 0; i < c.q.size(); i += 64) c.q[i] = 8;
    for (std::int64_t key = first; key < 700; ++key) {
      c.k[static_cast<std::size_t>(key * 64)] = -INFINITY;
    }
    for (const Config& config : kTiles) {
      for (const std::int64_t splits : kSplits) {
        c.run(config, Softmax(), splits);
        for (const float lse : c.lse) EXPECT_EQ(lse == -INFINITY, first == 0);
        for (const float o : c.o) EXPECT_TRUE(first == 0 ? o == 0 : std::isfinite(o));
      }
    }
  }
}

TEST(SplitForward, NanStaysInItsRow) {
  Case without(DType::bf16, {1, 130, 400, 1, 1, 64, 64}, causal());
  Case c = without;
  constexpr std::size_t kRow = 21;
  c.q[kRow * 64 + 9] = kNan;
  for (const Config& config : kTiles) {
    for (const std::int64_t splits : kSplits) {
      without.run(config, Softmax(), splits);
      c.run(config, Softmax(), splits);
      for (std::size_t row = 0; row < c.lse.size(); ++row) {
        ASSERT_EQ(std::isnan(c.lse[row]), row == kRow);
        for (std::size_t i = row * 64; i < (row + 1) * 64; ++i) {
          ASSERT_TRUE(row == kRow ? std::isnan(c.o[i]) : c.o[i] == without.o[i]);
        }
      }
    }
  }
}

// 64 queries and 512 keys in two parts: Q is read by both, K and V once, and a part's O and LSE
// are written and read.
TEST(SplitTraffic, HandWorked) {
  Problem p;
  p.heads_q = p.heads_kv = 1;
  p.batch = 1;
  p.seqlen_q = 64;
  p.seqlen_kv = 512;
  p.headdim = p.headdim_v = 64;
  const Traffic t = traffic(p, {128, 64}, kTiles[0], 3, 2);
  constexpr std::int64_t kRow = 128;  // bytes of Q, K, V and O
  constexpr std::int64_t kQuery = 64 * kRow;
  constexpr std::int64_t kKeys = 1024 * kRow;  // and values
  constexpr std::int64_t kLse = 256;
  constexpr std::int64_t kParts = 2 * (2 * kQuery + kLse);
  EXPECT_EQ(t.read_bytes(), 2 * kQuery + kKeys + kParts);
  EXPECT_EQ(t.write_bytes(), kQuery + kLse + kParts);
  ASSERT_EQ(t.stages.size(), 2U);
  EXPECT_EQ(t.stages[0].name, "forward");
  EXPECT_EQ(t.stages[0].sm_l2_bytes, 2 * kQuery + kKeys + kParts);
  EXPECT_EQ(t.stages[0].exp_ops, 64 * 512);
  EXPECT_EQ(t.stages[0].tiles, 2);
  EXPECT_EQ(t.stages[0].largest_tile, 1);
  EXPECT_EQ(t.stages[1].name, "combine");
  EXPECT_EQ(t.stages[1].sm_l2_bytes, kParts + kQuery + kLse);
  // Three parts of four stages: the longest has two.
  EXPECT_EQ(traffic(p, {128, 64}, kTiles[0], 3, 3).stages[0].largest_tile, 1.5);
}

// 8 heads of one query are 8 rows of one tile, and K and V are read once for them, not 8 times.
TEST(PackedTraffic, HandWorked) {
  Problem p;
  p.batch = 1;
  p.heads_q = 8;
  p.heads_kv = 1;
  p.seqlen_q = 1;
  p.seqlen_kv = 512;
  p.headdim = p.headdim_v = 64;
  Config config = kTiles[0];
  config.split = false;
  constexpr std::int64_t kRow = 128;  // bytes
  constexpr std::int64_t kQuery = 8 * kRow;
  constexpr std::int64_t kKeys = 1024 * kRow;  // and values
  EXPECT_EQ(traffic(p, {128, 64}, config, 3).read_bytes(), kQuery + 8 * kKeys);
  config.split = true;
  constexpr std::int64_t kParts = 8 * 64 * 4 + 8 * 4;  // O and LSE of one part
  const Traffic t = traffic(p, {128, 64}, config, 3, 1);
  EXPECT_EQ(t.read_bytes(), kQuery + kKeys + kParts);
  EXPECT_EQ(t.write_bytes(), kQuery + 32 + kParts);
  EXPECT_EQ(t.stages[0].tiles, 1);
  EXPECT_EQ(t.stages[0].exp_ops, 64 * 512);
}

}  // namespace
}  // namespace rooflash::hopper
