// cp.async: 16-byte copies from global to shared memory that bypass registers (sm_80 and up).
// PTX ISA, "Data Movement and Conversion Instructions: cp.async".
#pragma once

#include <cstdint>

namespace rooflash::ptx {

__device__ __forceinline__ std::uint32_t smem_address(const void* pointer) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(pointer));
}

// Copies 16 bytes, or writes zeros and does not look at `source` where it does not exist.
__device__ __forceinline__ void cp_async_16(std::uint32_t target, const void* source, bool exists) {
  asm volatile(
      "{.reg .pred missing;\n"
      "setp.eq.u32 missing, %2, 0;\n"
      "cp.async.cg.shared.global [%0], [%1], 16, missing;}\n" ::"r"(target),
      "l"(source), "r"(static_cast<std::uint32_t>(exists))
      : "memory");
}

// Copies the first `bytes` of 16 and writes zeros for the rest, whose source is not read.
__device__ __forceinline__ void cp_async_16_part(std::uint32_t target, const void* source,
                                                 int bytes) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(target), "l"(source),
               "r"(bytes)
               : "memory");
}

__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;\n" ::: "memory");
}

// Waits until at most `kPending` of this thread's committed groups are still in flight.
template <int kPending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(kPending) : "memory");
}

}  // namespace rooflash::ptx
