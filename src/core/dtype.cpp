#include "core/dtype.hpp"

#include <bit>
#include <cmath>
#include <limits>

namespace rooflash {
namespace {

// Rounds to `mantissa_bits` explicit bits for exponents of at least `min_exponent` and to the fixed
// spacing of the subnormals below it.
float round_mantissa(float value, int mantissa_bits, int min_exponent) {
  int exponent = 0;
  std::frexp(value, &exponent);  // value = m * 2^exponent with |m| in [0.5, 1)
  const int unit = std::max(exponent - 1, min_exponent) - mantissa_bits;
  return std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
}

}  // namespace

std::int64_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 2;
    case DType::e4m3:
      return 1;
  }
  return 0;
}

std::string_view to_string(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return "fp32";
    case DType::fp16:
      return "fp16";
    case DType::bf16:
      return "bf16";
    case DType::e4m3:
      return "e4m3";
  }
  return "?";
}

std::optional<DType> parse_dtype(std::string_view text) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::e4m3}) {
    if (text == to_string(dtype)) return dtype;
  }
  return std::nullopt;
}

float round_to(DType dtype, float value) {
  if (dtype == DType::fp32 || !std::isfinite(value) || value == 0.0F) return value;
  if (dtype == DType::bf16) {
    // bf16 shares fp32's exponent, so rounding is integer arithmetic on the bits.
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = bits + 0x7FFFU + ((bits >> 16U) & 1U);
    return std::bit_cast<float>(rounded & 0xFFFF0000U);
  }
  if (dtype == DType::fp16) {
    const float rounded = round_mantissa(value, 10, -14);
    if (std::fabs(rounded) > 65504.0F) {
      return std::copysign(std::numeric_limits<float>::infinity(), value);
    }
    return rounded;
  }
  const float rounded = round_mantissa(value, 3, -6);
  return std::fabs(rounded) > 448.0F ? std::copysign(448.0F, value) : rounded;
}

double epsilon(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return std::ldexp(1.0, -23);
    case DType::fp16:
      return std::ldexp(1.0, -10);
    case DType::bf16:
      return std::ldexp(1.0, -7);
    case DType::e4m3:
      return std::ldexp(1.0, -3);
  }
  return 0.0;
}

}  // namespace rooflash
