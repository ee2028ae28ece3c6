// How Hopper's tensor cores sum up products of e4m3 values, as far as it can be seen from outside:
// each instruction aligns 32 products and the sum before them to the largest of these, and drops
// what is left more than 13 bits behind that one's leading bit. Small products vanish beside a
// grown sum, so sums of many terms of one sign come out too small.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace rooflash::fp8 {

inline constexpr std::int64_t kProducts = 32;  // of one instruction
inline constexpr int kKeptBits = 13;           // behind the leading one

// sum + a[0] b[0] + ... of at most kProducts products, as one instruction gives it. a and b are
// e4m3 values: their products are exact in fp32.
inline float tensor_core_sum(float sum, const float* a, const float* b, std::int64_t count) {
  float products[kProducts];
  float largest = std::fabs(sum);
  float plain = sum;
  for (std::int64_t i = 0; i < count; ++i) {
    products[i] = a[i] * b[i];
    plain += products[i];
    largest = std::fabs(products[i]) > largest ? std::fabs(products[i]) : largest;
  }
  if (largest == 0 || !std::isfinite(plain)) return plain;
  int exponent = 0;
  std::frexp(largest, &exponent);  // largest = m 2^exponent with m in [0.5, 1)
  // In double, which holds the unit of the smallest fp32 numbers, and one over it.
  const double unit = std::ldexp(1.0, exponent - 1 - kKeptBits);
  const double per_unit = 1.0 / unit;
  auto kept = static_cast<std::int32_t>(sum * per_unit);
  for (std::int64_t i = 0; i < count; ++i) {
    kept += static_cast<std::int32_t>(products[i] * per_unit);
  }
  return static_cast<float>(kept * unit);
}

}  // namespace rooflash::fp8
