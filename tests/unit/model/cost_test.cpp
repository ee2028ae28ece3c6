#include "model/cost.hpp"

#include <gtest/gtest.h>

#include <random>

#include "core/version.hpp"

namespace rooflash {
namespace {

Problem make(std::int64_t batch, std::int64_t hq, std::int64_t hkv, std::int64_t sq,
             std::int64_t sk, std::int64_t d) {
  Problem p;
  p.batch = batch;
  p.heads_q = hq;
  p.heads_kv = hkv;
  p.seqlen_q = sq;
  p.seqlen_kv = sk;
  p.headdim = p.headdim_v = d;
  return p;
}

Problem masked(std::int64_t sq, std::int64_t sk, Mask mask) {
  Problem p = make(1, 1, 1, sq, sk, 64);
  p.mask = mask;
  return p;
}

std::int64_t counted_pairs(const Problem& p) {
  std::int64_t pairs = 0;
  for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
    const KeyRange keys = visible_keys(p, row);
    pairs += keys.end - keys.begin;
  }
  return pairs;
}

TEST(UnmaskedPairs, AgreesWithCountingOnRandomShapesAndMasks) {
  std::mt19937 random(1);
  const auto draw = [&](std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
  };
  for (int trial = 0; trial < 20000; ++trial) {
    const std::int64_t longest = trial % 4 == 0 ? 6 : 300;  // small shapes meet every corner
    Mask mask;
    mask.kind = static_cast<MaskKind>(draw(0, 2));
    mask.align = static_cast<Align>(draw(0, 1));
    if (mask.kind == MaskKind::window) {
      mask.left = draw(kUnbounded, longest + 2);
      mask.right = draw(kUnbounded, longest + 2);
    }
    const Problem p = masked(draw(1, longest), draw(1, longest), mask);
    ASSERT_EQ(unmasked_pairs(p), counted_pairs(p)) << case_id("pairs", p);
  }
}

TEST(UnmaskedPairs, CausalIsBottomRightWhereLengthsDiffer) {
  const Mask causal{MaskKind::causal};
  EXPECT_EQ(unmasked_pairs(masked(1, 8192, causal)), 8192);
  EXPECT_EQ(unmasked_pairs(masked(128, 4096, causal)), 516160);
  EXPECT_EQ(unmasked_pairs(masked(1, 8192, {MaskKind::causal, Align::top_left})), 1);
  EXPECT_EQ(unmasked_pairs(masked(5, 2, causal)), 3);  // the first three rows see no key
}

TEST(UnmaskedPairs, WindowIsNotCreditedAsFullCausal) {
  const auto window = [](std::int64_t left) {
    return Mask{MaskKind::window, Align::bottom_right, left, 0};
  };
  EXPECT_EQ(unmasked_pairs(masked(4096, 4096, window(255))), 1015936);
  EXPECT_EQ(unmasked_pairs(masked(8192, 8192, window(1023))), 7864832);
}

TEST(UnmaskedPairs, StaysExactPast32Bits) {
  constexpr std::int64_t kLong = 10'000'001;
  EXPECT_EQ(unmasked_pairs(masked(kLong, kLong, {})), kLong * kLong);
  EXPECT_EQ(unmasked_pairs(masked(kLong, kLong, {MaskKind::causal})), 50'000'015'000'001);
  EXPECT_EQ(unmasked_pairs(masked(1, std::int64_t{1} << 40, {MaskKind::causal})),
            std::int64_t{1} << 40);
  const Mask wide{MaskKind::window, Align::bottom_right, std::int64_t{1} << 53,
                  std::int64_t{1} << 53};
  EXPECT_EQ(unmasked_pairs(masked(kLong, kLong, wide)), kLong * kLong);
}

TEST(Flops, CausalHalfIsExact) {
  Problem p = make(2, 16, 16, 16384, 16384, 128);
  EXPECT_EQ(flops(p), 4.0 * 2 * 16 * 128 * 16384.0 * 16384.0);
  p.mask.kind = MaskKind::causal;
  EXPECT_EQ(flops(p), 4.0 * 2 * 16 * 128 * (16384.0 * 16385.0 / 2));
  p.pass = Pass::bwd;
  EXPECT_EQ(flops(p), 10.0 * 2 * 16 * 128 * (16384.0 * 16385.0 / 2));
}

TEST(Flops, GqaDoesNotChangeThem) {
  for (const std::int64_t hkv : {32, 8, 4, 1}) {
    EXPECT_EQ(flops(make(2, 32, hkv, 1, 8192, 128)), 268435456.0) << hkv;
    EXPECT_EQ(flops(make(2, 32, hkv, 4096, 4096, 128)), 549755813888.0) << hkv;
  }
}

TEST(Flops, HeadDimsOfKeysAndValuesCountApart) {
  Problem p = make(1, 1, 1, 3, 5, 192);
  p.headdim_v = 128;
  EXPECT_EQ(flops(p), 2.0 * 15 * (192 + 128));
  p.pass = Pass::bwd;
  EXPECT_EQ(flops(p), 2.0 * 15 * (3 * 192 + 2 * 128));
}

TEST(CompulsoryBytes, KeysAndValuesCountWithTheirOwnHeads) {
  EXPECT_EQ(compulsory_bytes(make(2, 32, 4, 8192, 8192, 128)), 301989888);
  const Problem decode = make(16, 80, 8, 1, 10240, 128);
  EXPECT_EQ(compulsory_bytes(decode), 671744000);
  EXPECT_EQ(flops(decode), 6710886400.0);
}

TEST(CompulsoryBytes, Fp8WritesBf16) {
  Problem p = make(1, 1, 1, 10, 20, 64);
  p.dtype = DType::e4m3;
  EXPECT_EQ(compulsory_bytes(p), 10 * 64 + 2 * 20 * 64 + 2 * 10 * 64);
}

TEST(CompulsoryBytes, BackwardReadsFiveTensorsAndWritesThree) {
  Problem p = make(1, 4, 2, 10, 20, 64);
  p.headdim_v = 32;
  p.pass = Pass::bwd;
  const std::int64_t q = 10 * 4 * 64;
  const std::int64_t k = 20 * 2 * 64;
  const std::int64_t v = 20 * 2 * 32;
  const std::int64_t o = 10 * 4 * 32;
  EXPECT_EQ(compulsory_bytes(p), 2 * ((q + k + v + o + o) + (q + k + v)));
}

TEST(ModelFigures, HoldTheCountsAndNoPrediction) {
  const Problem p = masked(128, 4096, {MaskKind::causal});
  const ModelFigures figures = model_figures(p);
  EXPECT_EQ(figures.convention, kFlopConvention);
  EXPECT_EQ(figures.pairs, 516160);
  EXPECT_EQ(figures.flops, 4.0 * 64 * 516160);
  EXPECT_EQ(figures.compulsory_bytes, compulsory_bytes(p));
  EXPECT_FALSE(figures.predicted_time_us.has_value());
  EXPECT_FALSE(figures.predicted_hbm_bytes.has_value());
}

}  // namespace
}  // namespace rooflash
