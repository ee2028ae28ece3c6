// Conversions to elements of 8 bits (sm_89 and up).
// PTX ISA, "Data Movement and Conversion Instructions: cvt".
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// Four numbers to e4m3, rounded to nearest, those beyond 448 to 448; `a` in the lowest byte.
__device__ __forceinline__ std::uint32_t pack_e4m3(float a, float b, float c, float d) {
  std::uint32_t result;
  asm("{.reg .b16 low, high;\n"
      "cvt.rn.satfinite.e4m3x2.f32 low, %2, %1;\n"
      "cvt.rn.satfinite.e4m3x2.f32 high, %4, %3;\n"
      "mov.b32 %0, {low, high};}\n"
      : "=r"(result)
      : "f"(a), "f"(b), "f"(c), "f"(d));
  return result;
}

}  // namespace rooflash::ptx
