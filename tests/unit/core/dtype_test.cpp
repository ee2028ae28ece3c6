#include "core/dtype.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace rooflash {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

// Every finite value of a format with `mantissa` explicit bits, ascending, from 0 to `largest`.
std::vector<float> positive_values(int mantissa, int min_exponent, float largest) {
  std::vector<float> values;
  for (int i = 0; i < (1 << mantissa); ++i) {
    values.push_back(std::ldexp(static_cast<float>(i), min_exponent - mantissa));
  }
  for (int exponent = min_exponent;; ++exponent) {
    for (int i = 0; i < (1 << mantissa); ++i) {
      const float value = std::ldexp(static_cast<float>((1 << mantissa) + i), exponent - mantissa);
      if (value > largest) return values;
      values.push_back(value);
    }
  }
}

// Values stay; midpoints go to the even neighbour; just beside a midpoint goes to the nearer one.
void check_nearest_even(DType dtype, const std::vector<float>& values) {
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const float low = values[i];
    const float high = values[i + 1];
    ASSERT_EQ(round_to(dtype, low), low);
    ASSERT_EQ(round_to(dtype, -low), -low);
    const float middle = 0.5F * (low + high);
    ASSERT_EQ(round_to(dtype, middle), i % 2 == 0 ? low : high) << low << " .. " << high;
    ASSERT_EQ(round_to(dtype, std::nextafter(middle, 0.0F)), low);
    ASSERT_EQ(round_to(dtype, std::nextafter(middle, kInf)), high);
    ASSERT_EQ(round_to(dtype, -middle), -(i % 2 == 0 ? low : high));
  }
}

TEST(RoundTo, Fp16IsNearestEvenOverAllValues) {
  check_nearest_even(DType::fp16, positive_values(10, -14, 65504.0F));
}

TEST(RoundTo, E4m3IsNearestEvenOverAllValues) {
  const std::vector<float> values = positive_values(3, -6, 448.0F);
  EXPECT_EQ(values.size(), 127U);  // the 128th code is NaN
  check_nearest_even(DType::e4m3, values);
}

TEST(RoundTo, Bf16IsNearestEven) {
  std::vector<float> values = positive_values(7, -20, 1024.0F);
  values.erase(values.begin(), values.begin() + 128);  // bf16 itself has no subnormals up here
  check_nearest_even(DType::bf16, values);
}

TEST(RoundTo, OverflowFollowsTheFormat) {
  EXPECT_EQ(round_to(DType::fp16, 65519.0F), 65504.0F);
  EXPECT_EQ(round_to(DType::fp16, 65520.0F), kInf);
  EXPECT_EQ(round_to(DType::fp16, -1e30F), -kInf);
  EXPECT_EQ(round_to(DType::bf16, 3.4e38F), kInf);
  EXPECT_EQ(round_to(DType::e4m3, 1e30F), 448.0F);
  EXPECT_EQ(round_to(DType::e4m3, -500.0F), -448.0F);
  EXPECT_EQ(round_to(DType::fp32, 1.2345678F), 1.2345678F);
}

TEST(RoundTo, KeepsNanAndTheSignOfZero) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::e4m3}) {
    EXPECT_TRUE(std::isnan(round_to(dtype, std::nanf(""))));
    EXPECT_TRUE(std::signbit(round_to(dtype, -0.0F)));
    EXPECT_EQ(round_to(dtype, 1e-30F * 0.0F), 0.0F);
  }
}

TEST(DTypeNames, RoundTripAndSizes) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::e4m3}) {
    EXPECT_EQ(parse_dtype(to_string(dtype)), dtype);
    const auto unit = static_cast<float>(epsilon(dtype));
    EXPECT_EQ(round_to(dtype, 1.0F + unit), 1.0F + unit);
    EXPECT_EQ(round_to(dtype, 1.0F + unit / 2), 1.0F);
  }
  EXPECT_EQ(parse_dtype("BF16"), std::nullopt);
  EXPECT_EQ(parse_dtype(""), std::nullopt);
  EXPECT_EQ(size_bytes(DType::fp32), 4);
  EXPECT_EQ(size_bytes(DType::fp16), 2);
  EXPECT_EQ(size_bytes(DType::e4m3), 1);
}

}  // namespace
}  // namespace rooflash
