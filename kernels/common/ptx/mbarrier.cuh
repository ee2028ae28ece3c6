// mbarrier: barriers in shared memory that count arrivals and bytes of asynchronous copies (sm_90).
// PTX ISA, "Parallel Synchronization and Communication Instructions: mbarrier".
//
// A barrier runs through phases; a phase ends when the arrivals and the bytes that it expects are
// there. Who waits names the phase by its parity: 0 for the first, then 1, 0, ...
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// `arrivals` end a phase. By one thread, before `mbarrier_init_fence` and a barrier of the block.
__device__ __forceinline__ void mbarrier_init(std::uint32_t barrier, std::uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n" ::"r"(barrier), "r"(arrivals)
               : "memory");
}

// Makes initialised barriers known to the copy engine.
__device__ __forceinline__ void mbarrier_init_fence() {
  asm volatile("fence.mbarrier_init.release.cluster;\n" ::: "memory");
}

__device__ __forceinline__ void mbarrier_arrive(std::uint32_t barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\n" ::"r"(barrier) : "memory");
}

// Arrives, and lets the phase wait for `bytes` more to be copied.
__device__ __forceinline__ void mbarrier_arrive_expect(std::uint32_t barrier, std::uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\n" ::"r"(barrier), "r"(bytes)
               : "memory");
}

// Waits for the end of the phase of this parity. What the arriving threads wrote before, and what
// was copied, is seen afterwards.
__device__ __forceinline__ void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity) {
  asm volatile(
      "{.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@done bra.uni ended;\n"
      "bra.uni again;\n"
      "ended:}\n" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

}  // namespace rooflash::ptx
