// Special registers.
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// Nanoseconds of a clock shared by the whole GPU.
__device__ inline std::uint64_t globaltimer_ns() {
  std::uint64_t time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

// blockIdx.x, read anew by each call where the built-in is kept in a register.
__device__ __forceinline__ int block_index() {
  int index;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(index));
  return index;
}

// The SM that the calling thread runs on.
__device__ inline unsigned sm_id() {
  unsigned id;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(id));
  return id;
}

// The same value, which the compiler takes for a new one: what follows from it is worked out anew
// in place of being kept in registers through a loop.
__device__ __forceinline__ int fresh(int value) {
  asm volatile("" : "+r"(value));
  return value;
}

// A value that all lanes of the warp share, in a uniform register, so that what follows from it is
// worked out once a warp. All lanes take part.
__device__ __forceinline__ int uniform(int value) {
  int result;
  asm volatile("redux.sync.min.s32 %0, %1, 0xFFFFFFFF;\n" : "=r"(result) : "r"(value));
  return result;
}

}  // namespace rooflash::ptx
