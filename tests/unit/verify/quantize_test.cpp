// Quantising to e4m3: scales, rotation, and what hostile values do.
#include "verify/quantize.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/reference.hpp"

namespace rooflash {
namespace {

Problem problem() {
  Problem p;
  p.dtype = DType::e4m3;
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  p.seqlen_q = 130;
  p.seqlen_kv = 400;
  p.headdim = 16;
  p.headdim_v = 8;
  return p;
}

// Values of V as they stand for: scale x 2^exponent x e4m3.
double value_of(const Problem& p, const HostCase& c, std::int64_t b, std::int64_t row,
                std::int64_t head, std::int64_t col) {
  const std::int64_t kv = b * p.heads_kv + head;
  const auto at =
      static_cast<std::size_t>(((b * p.seqlen_kv + row) * p.heads_kv + head) * p.headdim_v + col);
  return std::ldexp(
      static_cast<double>(c.v_scale[static_cast<std::size_t>(kv)]) * c.v[at],
      static_cast<int>(c.v_log2[static_cast<std::size_t>(kv * 3 + row / kScaleRowsKv)]));
}

TEST(Quantize, KeepsEachValueToARoundingOfE4m3) {
  for (const char* scale : {"", "head", "tensor"}) {
    Problem p = problem();
    if (*scale != '\0') p.options["scale"] = scale;
    const HostCase c = make_host_case(p, 5);
    ASSERT_EQ(c.q_scale.size(), 2U * 4 * 3);
    ASSERT_EQ(c.k_scale.size(), 2U * 2 * 3);
    ASSERT_EQ(c.v_scale.size(), 2U * 2);
    ASSERT_EQ(c.v_log2.size(), 2U * 2 * 3);
    for (const float value : c.q) EXPECT_EQ(value, round_to(DType::e4m3, value));
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t row = 0; row < p.seqlen_kv; ++row) {
        for (std::int64_t head = 0; head < 2; ++head) {
          for (std::int64_t col = 0; col < p.headdim_v; ++col) {
            const double real = c.real_v[static_cast<std::size_t>(
                ((b * p.seqlen_kv + row) * p.heads_kv + head) * p.headdim_v + col)];
            // Half a unit of four bits, or of the smallest numbers.
            const double smallest = std::ldexp(c.v_scale[0], -10);
            EXPECT_NEAR(value_of(p, c, b, row, head, col), real,
                        std::max(std::fabs(real) / 16, 2 * smallest));
          }
        }
      }
    }
  }
}

TEST(Quantize, EveryBlockReachesTheLargestNumber) {
  const Problem p = problem();
  const HostCase c = make_host_case(p, 5);
  const auto largest = [&](std::int64_t head, std::int64_t first, std::int64_t end) {
    float most = 0;
    for (std::int64_t row = first; row < end; ++row) {
      for (std::int64_t col = 0; col < p.headdim; ++col) {
        most = std::max(
            most,
            std::fabs(c.q[static_cast<std::size_t>((row * p.heads_q + head) * p.headdim + col)]));
      }
    }
    return most;
  };
  EXPECT_EQ(largest(0, 0, 64), 448);
  EXPECT_EQ(largest(3, 64, 128), 448);
  EXPECT_EQ(largest(1, 128, 130), 448);
}

TEST(Quantize, WiderSpansShareTheirScale) {
  Problem p = problem();
  p.options["scale"] = "head";
  const HostCase head = make_host_case(p, 5);
  EXPECT_EQ(head.q_scale[0], head.q_scale[2]);
  EXPECT_NE(head.q_scale[2], head.q_scale[3]);
  EXPECT_TRUE(std::all_of(head.v_log2.begin(), head.v_log2.end(), [](float e) { return e == 0; }));
  p.options["scale"] = "tensor";
  const HostCase tensor = make_host_case(p, 5);
  EXPECT_EQ(std::count(tensor.q_scale.begin(), tensor.q_scale.end(), tensor.q_scale[0]), 24);
  EXPECT_EQ(std::count(tensor.v_scale.begin(), tensor.v_scale.end(), tensor.v_scale[0]), 4);
}

// Rotating Q and K leaves their products, and spreads an outlier over the row.
TEST(Quantize, HadamardKeepsScores) {
  Problem p = problem();
  p.distribution = Distribution::outlier;
  p.options["hadamard"] = "on";
  const HostCase c = make_host_case(p, 5);
  const auto dot = [&](const std::vector<float>& q, const std::vector<float>& k, std::int64_t i,
                       std::int64_t j) {
    double sum = 0;
    for (std::int64_t col = 0; col < p.headdim; ++col) {
      sum += static_cast<double>(q[static_cast<std::size_t>(i * p.heads_q * p.headdim + col)]) *
             k[static_cast<std::size_t>(j * p.heads_kv * p.headdim + col)];
    }
    return sum;
  };
  double errors = 0;
  double squares = 0;
  for (std::int64_t i = 0; i < 60; ++i) {
    for (std::int64_t j = 0; j < 60; ++j) {
      const double real = dot(c.real_q, c.real_k, i, j);
      const double got = dot(c.q, c.k, i, j) * c.q_scale[0] * c.k_scale[0];
      errors += (got - real) * (got - real);
      squares += real * real;
    }
  }
  EXPECT_LT(std::sqrt(errors / squares), 0.06);
  EXPECT_GT(errors, 0);
}

TEST(Quantize, HadamardIsOrthogonal) {
  Problem p = problem();
  p.batch = p.heads_q = p.heads_kv = 1;
  p.seqlen_q = p.headdim;
  p.options["hadamard"] = "on";
  // One unit vector a row: the rows of the matrix.
  std::vector<float> q(static_cast<std::size_t>(p.headdim * p.headdim), 0.0F);
  for (std::int64_t i = 0; i < p.headdim; ++i) q[static_cast<std::size_t>(i * p.headdim + i)] = 1;
  const std::vector<float> k(static_cast<std::size_t>(k_elements(p)), 1.0F);
  const std::vector<float> v(static_cast<std::size_t>(v_elements(p)), 1.0F);
  const QuantizedInputs result = quantize(p, q, k, v);
  int negative = 0;
  for (const float value : result.q) {
    EXPECT_EQ(std::fabs(value), 448);  // 1/4 each
    negative += value < 0 ? 1 : 0;
  }
  EXPECT_GT(negative, 64);
  EXPECT_LT(negative, 192);
  EXPECT_EQ(result.q_scale[0], 0.25F / 448);
}

TEST(Quantize, SmallBlocksOfVAreScaledUp) {
  Problem p = problem();
  p.batch = p.heads_q = p.heads_kv = 1;
  std::vector<float> v(static_cast<std::size_t>(v_elements(p)), 1.0F);
  // Keys 192 to 383: an eighth, and a little more than a 2^20th.
  std::fill(v.begin() + 192 * 8, v.begin() + 384 * 8, 0.125F);
  std::fill(v.begin() + 384 * 8, v.end(), 1.01F / (1 << 20));
  const QuantizedInputs result =
      quantize(p, std::vector<float>(static_cast<std::size_t>(q_elements(p)), 1.0F),
               std::vector<float>(static_cast<std::size_t>(k_elements(p)), 1.0F), v);
  EXPECT_EQ(result.v_log2, (std::vector<float>{0, -3, -19}));
  EXPECT_EQ(result.v_scale[0], 1.0F / 448);
  EXPECT_EQ(result.v[0], 448);
  EXPECT_EQ(result.v[200 * 8], 448);
  EXPECT_EQ(result.v[390 * 8], 224);
}

// V has a mean of 2: what is quantised has none, and with the mean it is V again.
TEST(Quantize, SmoothingTakesTheMeanOfVOut) {
  Problem p = problem();
  p.distribution = Distribution::biased;
  p.options["smooth"] = "on";
  const HostCase c = make_host_case(p, 5);
  ASSERT_EQ(static_cast<std::int64_t>(c.v_mean.size()), p.batch * p.heads_kv * p.headdim_v);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t head = 0; head < p.heads_kv; ++head) {
      for (std::int64_t col = 0; col < p.headdim_v; ++col) {
        const double mean =
            c.v_mean[static_cast<std::size_t>((b * p.heads_kv + head) * p.headdim_v + col)];
        EXPECT_NEAR(mean, 2, 0.3);
        double left = 0;
        double errors = 0;
        for (std::int64_t row = 0; row < p.seqlen_kv; ++row) {
          const double real = c.real_v[static_cast<std::size_t>(
              ((b * p.seqlen_kv + row) * p.heads_kv + head) * p.headdim_v + col)];
          const double got = value_of(p, c, b, row, head, col);
          left += got;
          errors += (got + mean - real) * (got + mean - real);
        }
        EXPECT_LT(std::fabs(left / static_cast<double>(p.seqlen_kv)), 0.01);
        EXPECT_LT(std::sqrt(errors / static_cast<double>(p.seqlen_kv)), 0.04);
      }
    }
  }
}

TEST(Quantize, HostileValuesStayInTheirBlock) {
  Problem p = problem();
  p.batch = p.heads_q = p.heads_kv = 1;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> q(static_cast<std::size_t>(q_elements(p)), 1e-40F);  // all but nothing
  std::vector<float> k(static_cast<std::size_t>(k_elements(p)), 0.0F);
  std::vector<float> v(static_cast<std::size_t>(v_elements(p)), 1e-4F);
  q[0] = kNan;
  k[192 * 16] = std::numeric_limits<float>::max();
  const QuantizedInputs result = quantize(p, q, k, v);
  EXPECT_TRUE(std::isnan(result.q[0]));
  EXPECT_EQ(std::count_if(result.q.begin(), result.q.end(), [](float x) { return x != x; }), 1);
  EXPECT_EQ(result.k[0], 0);
  EXPECT_EQ(result.k[192 * 16], 448);
  for (const float scale : result.q_scale) EXPECT_GE(scale, FLT_MIN);
  for (const float scale : result.k_scale) EXPECT_TRUE(std::isfinite(scale) && scale > 0);
  for (const float value : result.v) EXPECT_EQ(value, 448);
}

}  // namespace
}  // namespace rooflash
