// Accesses to shared memory by instructions of their own, which stay where they are written.
// PTX ISA, "Data Movement and Conversion Instructions: ld, st, stmatrix".
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

__device__ __forceinline__ int4 load_shared_int4(std::uint32_t address) {
  int4 value;
  asm volatile("ld.volatile.shared.v4.s32 {%0,%1,%2,%3}, [%4];\n"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address));
  return value;
}

__device__ __forceinline__ void store_shared_16(std::uint32_t address, int4 value) {
  asm volatile("st.shared.v4.s32 [%0], {%1,%2,%3,%4};\n" ::"r"(address), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}

__device__ __forceinline__ void store_shared_uint4(std::uint32_t address, uint4 value) {
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};\n" ::"r"(address), "r"(value.x), "r"(value.y),
               "r"(value.z), "r"(value.w)
               : "memory");
}

// Four 8x8 matrices of 16-bit elements from the accumulators' layout; lane t gives the address of
// row t % 8 of matrix t / 8 (sm_90).
__device__ __forceinline__ void stmatrix_x4(std::uint32_t address, const std::uint32_t (&r)[4]) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};\n" ::"r"(address),
               "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
               : "memory");
}

// 4 bytes to `address`, a multiple of 4.
__device__ __forceinline__ void store_shared_4(std::uint32_t address, std::uint32_t value) {
  asm volatile("st.shared.u32 [%0], %1;\n" ::"r"(address), "r"(value) : "memory");
}

// 8 bytes to `address`, a multiple of 8.
__device__ __forceinline__ void store_shared_8(std::uint32_t address, uint2 value) {
  asm volatile("st.shared.v2.u32 [%0], {%1,%2};\n" ::"r"(address), "r"(value.x), "r"(value.y)
               : "memory");
}

// Of 32 bits, a multiple of 4. Volatile, as above.
__device__ __forceinline__ std::uint32_t load_shared_4(std::uint32_t address) {
  std::uint32_t value;
  asm volatile("ld.volatile.shared.u32 %0, [%1];\n" : "=r"(value) : "r"(address));
  return value;
}

}  // namespace rooflash::ptx
