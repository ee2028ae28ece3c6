// From real values to e4m3 and the scales that go with them (core/fp8.hpp). The arithmetic is fp32
// in a fixed order, so the CPU and the GPU agree to the bit. Usable from nvcc and from g++.
#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <vector>

#include "core/fp8.hpp"
#include "verify/generator.hpp"

namespace rooflash {

namespace fp8 {

inline constexpr float kLargest = 448;  // finite value of e4m3

// The scale of values of which `largest` is the greatest magnitude: it becomes kLargest. Values so
// small that theirs would underflow keep the smallest normal one.
ROOFLASH_HD inline float scale_of(float largest) {
  const float scale = largest / kLargest;
  return scale >= FLT_MIN ? scale : FLT_MIN;
}

// The power of two of a block of V: its values, with at most `largest`, are scaled up by it without
// passing `head_largest`, the most that its head has.
ROOFLASH_HD inline float block_log2(float largest, float head_largest) {
  constexpr int kLowest = -30;  // beyond it, values of the block are lost beside those of its head
  if (!(largest > 0)) return 0;
  int exponent = 0;
  const float mantissa = frexpf(largest / head_largest, &exponent);
  if (mantissa == 0.5F) --exponent;
  exponent = exponent < kLowest ? kLowest : exponent;
  return static_cast<float>(exponent < 0 ? exponent : 0);
}

// The random diagonal that goes before the Hadamard matrix: +1 or -1.
ROOFLASH_HD inline float sign_of(std::int64_t column) {
  constexpr std::uint64_t kSeed = 0x726F6F666C617368ULL;
  const std::uint64_t bits =
      generator::mix(kSeed + generator::kGolden * (static_cast<std::uint64_t>(column) + 1));
  return (bits >> 63U) != 0 ? -1.0F : 1.0F;
}

// One of a pair's two values after a step of the Hadamard matrix: the second one's is the
// difference.
ROOFLASH_HD inline float butterfly(float own, float other, bool is_second) {
  return is_second ? other - own : own + other;
}

// 1 / sqrt(width), which makes the matrix of `width` columns orthogonal.
ROOFLASH_HD inline float hadamard_factor(std::int64_t width) {
  return 1.0F / sqrtf(static_cast<float>(width));
}

}  // namespace fp8

// Inputs of an e4m3 problem. Layouts as in core/problem.hpp and kernel.hpp.
struct QuantizedInputs {
  std::vector<float> q, k, v;  // e4m3 values
  std::vector<float> q_scale, k_scale, v_scale, v_log2, v_mean;
};

// Quantises real Q, K and V, shaped as the problem says, by its modes.
QuantizedInputs quantize(const Problem& problem, const std::vector<float>& q,
                         const std::vector<float>& k, const std::vector<float>& v);

}  // namespace rooflash
