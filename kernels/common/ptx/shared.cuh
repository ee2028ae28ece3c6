// Loads from shared memory and stores to it that stay where they are written.
// PTX ISA, "Data Movement and Conversion Instructions: ld, st".
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// 16 bytes at `address`, a multiple of 16. Volatile: never merged with another, nor left out.
__device__ __forceinline__ uint4 load_shared_16(std::uint32_t address) {
  uint4 value;
  asm volatile("ld.volatile.shared.v4.u32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address));
  return value;
}

// 4 bytes to `address`, a multiple of 4.
__device__ __forceinline__ void store_shared_4(std::uint32_t address, std::uint32_t value) {
  asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(address), "r"(value) : "memory");
}

}  // namespace rooflash::ptx
