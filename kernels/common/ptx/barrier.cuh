// Barriers for a part of a block's threads.
// PTX ISA, "Parallel Synchronization and Communication Instructions: barrier".
#pragma once

namespace rooflash::ptx {

// Waits for `threads` threads, whole warps, at barrier `id` of 1 to 15; 0 is __syncthreads's.
// Orders their memory accesses as that does.
__device__ __forceinline__ void barrier_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;\n" ::"r"(id), "r"(threads) : "memory");
}

}  // namespace rooflash::ptx
