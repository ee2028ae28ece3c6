// What L2 keeps (sm_80). PTX ISA, "createpolicy", "ld", "applypriority".
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// Four bytes, whose line L2 is to evict last.
__device__ __forceinline__ unsigned load_kept(const void* address) {
  std::uint64_t policy;
  unsigned value;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;\n" : "=l"(policy));
  asm volatile("ld.global.L2::cache_hint.u32 %0, [%1], %2;\n"
               : "=r"(value)
               : "l"(address), "l"(policy)
               : "memory");
  return value;
}

// Makes the line of 128 bytes that begins here an ordinary one again.
__device__ __forceinline__ void release_line(const void* address) {
  asm volatile("applypriority.global.L2::evict_normal [%0], 128;\n" ::"l"(address) : "memory");
}

}  // namespace rooflash::ptx
