// Element types of Q, K, V and O.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace rooflash {

enum class DType { fp32, fp16, bf16, e4m3 };

// Bytes of one element in memory.
std::int64_t size_bytes(DType dtype);

std::string_view to_string(DType dtype);
std::optional<DType> parse_dtype(std::string_view text);

// `value` rounded to the nearest value of `dtype` (ties to even), as a float. Overflow gives
// infinity for fp16 and bf16 and the largest finite value (448) for e4m3, as the GPU's converts do.
float round_to(DType dtype, float value);

// Distance between 1.0 and the next larger value of `dtype` (its rounding unit at 1).
double epsilon(DType dtype);

}  // namespace rooflash
