#include "verify/generator.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "verify/reference.hpp"

namespace rooflash {
namespace {

InputSpec spec_of(Distribution distribution, TensorId tensor, std::uint64_t seed = 7) {
  return {distribution, tensor, seed, 64};
}

struct Moments {
  double mean = 0, variance = 0, kurtosis = 0, beyond_3 = 0, largest = 0;
};

Moments moments(const InputSpec& spec, int n = 1 << 20) {
  Moments m;
  double s1 = 0, s2 = 0, s4 = 0;
  for (int i = 0; i < n; ++i) {
    const double x = input_value(spec, 0, i % 3, i / 64, i % 64);
    s1 += x;
    s2 += x * x;
    s4 += x * x * x * x;
    m.beyond_3 += std::fabs(x) > 3;
    m.largest = std::max(m.largest, std::fabs(x));
  }
  m.mean = s1 / n;
  m.variance = s2 / n - m.mean * m.mean;
  m.kurtosis = (s4 / n) / (m.variance * m.variance);
  m.beyond_3 /= n;
  return m;
}

TEST(Generator, NormalMomentsAndTails) {
  const Moments m = moments(spec_of(Distribution::normal, TensorId::q));
  EXPECT_NEAR(m.mean, 0, 0.004);
  EXPECT_NEAR(m.variance, 1, 0.006);
  EXPECT_NEAR(m.kurtosis, 3, 0.03);
  EXPECT_NEAR(m.beyond_3, 0.0027, 0.0003);
  EXPECT_GT(m.largest, 4.3);
  EXPECT_LT(m.largest, 5.5);
}

// Quantiles of the standard normal at both edges of an octave, and where the table is cut.
TEST(Generator, InverseCdfAtKnownPoints) {
  const auto z = [](std::uint64_t tail) {
    return static_cast<double>(generator::normal_fixed(tail << 23U)) / generator::kOne;
  };
  const std::uint64_t one = std::uint64_t{1} << 40U;  // p = 1
  EXPECT_NEAR(z(one - 1), 0.0, 1e-5);
  EXPECT_NEAR(z(one / 2), 0.67449, 1e-4);
  EXPECT_NEAR(z(one / 64), 2.41756, 1e-4);
  EXPECT_NEAR(z(one / 20), 1.95996, 3e-3);
  EXPECT_NEAR(z(1), 5.4199, 1e-3);
  EXPECT_EQ(generator::normal_fixed((one / 2) << 23U),
            -generator::normal_fixed(((one / 2) << 23U) | (std::uint64_t{1} << 63U)));
}

// Golden values: they change only together with kInputsVersion.
TEST(Generator, GoldenIntegers) {
  EXPECT_EQ(generator::mix(1), 0x5692161D100B05E5ULL);
  const InputSpec spec = spec_of(Distribution::normal, TensorId::k, 42);
  EXPECT_EQ(generator::random_bits(spec, 1, 2, 3, 4), 0x18052C2EB0F92D2FULL);
  EXPECT_EQ(generator::value_fixed(spec, generator::random_bits(spec, 1, 2, 3, 4)), 1381554);
  const InputSpec negative = spec_of(Distribution::negative, TensorId::q, 42);
  EXPECT_EQ(generator::value_fixed(negative, 0), 5481933);
}

TEST(Generator, StreamsDifferBySeedTensorBatchAndHead) {
  const InputSpec base = spec_of(Distribution::normal, TensorId::q);
  const float value = input_value(base, 0, 0, 5, 6);
  EXPECT_EQ(value, input_value(base, 0, 0, 5, 6));
  EXPECT_NE(value, input_value(base, 1, 0, 5, 6));
  EXPECT_NE(value, input_value(base, 0, 1, 5, 6));
  EXPECT_NE(value, input_value(base, 0, 0, 6, 6));
  EXPECT_NE(value, input_value(base, 0, 0, 5, 7));
  EXPECT_NE(value, input_value(spec_of(Distribution::normal, TensorId::k), 0, 0, 5, 6));
  EXPECT_NE(value, input_value(spec_of(Distribution::normal, TensorId::q, 8), 0, 0, 5, 6));
}

TEST(Generator, NeighboursAreUncorrelated) {
  const InputSpec q = spec_of(Distribution::normal, TensorId::q);
  double across_cols = 0, across_heads = 0;
  constexpr int kCount = 1 << 16;
  for (int i = 0; i < kCount; ++i) {
    const double x = input_value(q, 0, 0, i / 64, i % 64);
    across_cols += x * input_value(q, 0, 0, i / 64, i % 64 + 1);
    across_heads += x * input_value(q, 0, 1, i / 64, i % 64);
  }
  EXPECT_NEAR(across_cols / kCount, 0, 0.016);  // four standard errors
  EXPECT_NEAR(across_heads / kCount, 0, 0.016);
}

TEST(Generator, BatchItemsDoNotDependOnTheBatchSize) {
  Problem p;
  p.batch = 1;
  p.seqlen_q = 3;
  p.seqlen_kv = 5;
  const HostCase one = make_host_case(p, 9);
  p.batch = 3;
  const HostCase three = make_host_case(p, 9);
  EXPECT_TRUE(std::equal(one.q.begin(), one.q.end(), three.q.begin()));
  EXPECT_TRUE(std::equal(one.v.begin(), one.v.end(), three.v.begin()));
  EXPECT_FALSE(std::equal(one.q.begin(), one.q.end(), three.q.begin() + 3 * 64));
  for (const float value : three.k) EXPECT_EQ(value, round_to(DType::bf16, value));
}

TEST(Generator, Outliers) {
  const Moments m = moments(spec_of(Distribution::outlier, TensorId::v));
  EXPECT_NEAR(m.variance, 1.1, 0.02);  // 1 + 0.001 * 100
  EXPECT_GT(m.largest, 20);
}

TEST(Generator, LargeAndBiased) {
  EXPECT_NEAR(std::sqrt(moments(spec_of(Distribution::large, TensorId::q)).variance), 100, 0.5);
  EXPECT_NEAR(moments(spec_of(Distribution::biased, TensorId::v)).mean, 2, 0.004);
  EXPECT_NEAR(moments(spec_of(Distribution::biased_less, TensorId::v)).mean, 0.3, 0.004);
  EXPECT_NEAR(moments(spec_of(Distribution::biased, TensorId::k)).mean, 0, 0.004);
}

// Mean and standard deviation of the scaled scores of 64 queries and 64 keys.
void score_moments(Distribution distribution, std::int64_t headdim, double* mean, double* sd) {
  Problem p;
  p.dtype = DType::fp32;
  p.distribution = distribution;
  p.seqlen_q = p.seqlen_kv = 64;
  p.headdim = headdim;
  const HostCase c = make_host_case(p, 3);
  double s1 = 0, s2 = 0;
  for (std::int64_t i = 0; i < 64; ++i) {
    for (std::int64_t j = 0; j < 64; ++j) {
      double dot = 0;
      for (std::int64_t d = 0; d < headdim; ++d) {
        dot += static_cast<double>(c.q[i * headdim + d]) * c.k[j * headdim + d];
      }
      dot *= softmax_scale(p);
      s1 += dot;
      s2 += dot * dot;
    }
  }
  *mean = s1 / 4096;
  *sd = std::sqrt(std::max(0.0, s2 / 4096 - *mean * *mean));
}

TEST(Generator, ScoresOfNegativePeakyAndConstant) {
  for (const std::int64_t headdim : {64, 128, 192}) {
    double mean = 0, sd = 0;
    score_moments(Distribution::negative, headdim, &mean, &sd);
    EXPECT_NEAR(mean, -120, 2);
    EXPECT_GT(sd, 0.5);
    EXPECT_LT(sd, 4);
    score_moments(Distribution::peaky, headdim, &mean, &sd);
    EXPECT_NEAR(sd, 30, 3);
    score_moments(Distribution::constant, headdim, &mean, &sd);
    EXPECT_NEAR(sd, 0, 1e-3);
  }
}

}  // namespace
}  // namespace rooflash
