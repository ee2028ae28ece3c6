// Hand-worked cases of the reference and the emulation.
#include "verify/reference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace rooflash {
namespace {

Problem shape(std::int64_t sq, std::int64_t sk, std::int64_t d = 4) {
  Problem p;
  p.dtype = DType::fp32;
  p.seqlen_q = sq;
  p.seqlen_kv = sk;
  p.headdim = p.headdim_v = d;
  return p;
}

// Number of keys that row `row` sees: with K zero and V[j] = j + 1 in column 0 and j^2 in column 1.
struct Seen {
  double count, mean;
};
Seen seen(Problem p, std::int64_t row) {
  HostCase c = make_host_case(p, 1);
  std::fill(c.k.begin(), c.k.end(), 0.0F);
  for (std::int64_t j = 0; j < p.seqlen_kv; ++j) c.v[j * p.headdim_v] = static_cast<float>(j);
  const ReferenceRow r = reference_row(p, c.tensors(), {0, 0, row});
  return {std::exp(r.lse), r.o[0]};
}

TEST(Reference, OnesGiveOnes) {
  const Problem p = shape(3, 7);
  HostCase c = make_host_case(p, 1);
  std::fill(c.v.begin(), c.v.end(), 1.0F);
  for (std::int64_t row = 0; row < 3; ++row) {
    for (const double value : reference_row(p, c.tensors(), {0, 0, row}).o) {
      EXPECT_NEAR(value, 1.0, 1e-15);
    }
    for (const float value : emulated_row(p, c.tensors(), {0, 0, row}).o) {
      EXPECT_NEAR(value, 1.0F, 1e-6F);
    }
  }
}

TEST(Reference, ZeroKeysGiveTheMeanOfTheValues) {
  const Seen s = seen(shape(2, 5), 1);
  EXPECT_NEAR(s.mean, 2.0, 1e-14);
  EXPECT_NEAR(s.count, 5.0, 1e-13);
}

TEST(Reference, OneHotValuesShowTheWeights) {
  Problem p = shape(1, 2, 2);
  HostCase c = make_host_case(p, 1);
  // Scores ln 3 and 0, so the weights are 3/4 and 1/4. scale = 1 / sqrt 2.
  c.q = {static_cast<float>(std::sqrt(2.0)), 0};
  c.k = {static_cast<float>(std::log(3.0)), 5, 0, 7};
  c.v = {1, 0, 0, 1};
  const ReferenceRow r = reference_row(p, c.tensors(), {0, 0, 0});
  EXPECT_NEAR(r.o[0], 0.75, 1e-7);
  EXPECT_NEAR(r.o[1], 0.25, 1e-7);
  EXPECT_NEAR(r.lse, std::log(4.0), 1e-7);
}

TEST(Reference, OneKeyGivesItsValue) {
  Problem p = shape(1, 1);
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  HostCase c = make_host_case(p, 1);
  // Query head 3 reads KV head 1.
  const ReferenceRow r = reference_row(p, c.tensors(), {1, 3, 0});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(r.o[i], c.v[(1 * 2 + 1) * 4 + i]);
}

TEST(Reference, CausalBottomRightAndTopLeft) {
  Problem p = shape(2, 5);
  p.mask.kind = MaskKind::causal;
  EXPECT_NEAR(seen(p, 0).count, 4, 1e-12);
  EXPECT_NEAR(seen(p, 1).count, 5, 1e-12);
  p.mask.align = Align::top_left;
  EXPECT_NEAR(seen(p, 0).count, 1, 1e-12);
  EXPECT_NEAR(seen(p, 1).count, 2, 1e-12);
}

TEST(Reference, WindowIsInclusive) {
  Problem p = shape(8, 8);
  p.mask = {MaskKind::window, Align::bottom_right, 2, 1};
  EXPECT_NEAR(seen(p, 4).count, 4, 1e-12);  // keys 2, 3, 4, 5
  EXPECT_NEAR(seen(p, 4).mean, 3.5, 1e-12);
  EXPECT_NEAR(seen(p, 0).count, 2, 1e-12);
  EXPECT_NEAR(seen(p, 7).count, 3, 1e-12);
}

TEST(Reference, EmptyRowsAreZeroAndMinusInfinity) {
  Problem p = shape(5, 2);
  p.mask.kind = MaskKind::causal;
  HostCase c = make_host_case(p, 1);
  const ReferenceRow r = reference_row(p, c.tensors(), {0, 0, 2});
  const EmulatedRow e = emulated_row(p, c.tensors(), {0, 0, 2});
  EXPECT_EQ(r.lse, -INFINITY);
  EXPECT_EQ(e.lse, -INFINITY);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(r.o[i], 0.0);
    EXPECT_EQ(e.o[i], 0.0F);
  }
  EXPECT_NEAR(seen(p, 3).count, 1, 1e-12);
}

TEST(Emulation, RoundsAtScoresWeightsAndOutput) {
  Problem p = shape(1, 2, 1);
  p.dtype = DType::bf16;
  HostCase c = make_host_case(p, 1);
  c.q = {1};
  c.k = {1.001F, 0};  // rounds to a score of 1 and 0
  c.v = {1, 0};
  const float e = std::exp(1.0F);
  EXPECT_EQ(emulated_row(p, c.tensors(), {0, 0, 0}).o[0], round_to(DType::bf16, e / (e + 1)));
  EXPECT_EQ(emulated_row(p, c.tensors(), {0, 0, 0}).lse, 1.0F + std::log(1.0F + std::exp(-1.0F)));
}

TEST(Emulation, ScoresBeyondFp16StayFp32) {
  Problem p = shape(1, 2, 1);
  p.dtype = DType::fp16;
  HostCase c = make_host_case(p, 1);
  c.q = {400};
  c.k = {400, 0};  // 160000 is over 65504
  c.v = {3, 5};
  const EmulatedRow e = emulated_row(p, c.tensors(), {0, 0, 0});
  EXPECT_EQ(e.o[0], 3.0F);
  EXPECT_EQ(e.lse, 160000.0F);
}

}  // namespace
}  // namespace rooflash
