// CTAs of a cluster, which reach one another's shared memory (sm_90).
// PTX ISA, "Special Registers: %cluster_ctarank", "Parallel Synchronization and Communication
// Instructions: barrier.cluster, mbarrier.arrive", "Data Movement and Conversion Instructions:
// mapa, st.async".
//
// What is in another CTA is named by the own address of the same, and that CTA's rank.
#pragma once

#include <cstdint>

namespace rooflash::ptx {

// Of the CTA in its cluster.
__device__ __forceinline__ int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// Waits for all threads of the cluster, and for what they did in one another's shared memory.
__device__ __forceinline__ void cluster_sync() {
  asm volatile(
      "barrier.cluster.arrive.release;\n"
      "barrier.cluster.wait.acquire;\n" ::
          : "memory");
}
// Waits for the threads, and of their memory accesses for those that `mbarrier_init_fence` orders.
__device__ __forceinline__ void cluster_sync_relaxed() {
  asm volatile(
      "barrier.cluster.arrive.relaxed;\n"
      "barrier.cluster.wait.acquire;\n" ::
          : "memory");
}

// Arrives at a barrier of CTA `rank`. Release is at the default scope, the CTA: what is arrived for
// are reads that have ended, and with the cluster's each arrival would wait for all writes before.
__device__ __forceinline__ void mbarrier_arrive_at(std::uint32_t barrier, unsigned rank) {
  asm volatile(
      "{.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];}\n" ::"r"(barrier),
      "r"(rank)
      : "memory");
}

// 4 bytes to `address` in CTA `rank`, which are counted at its `barrier`.
__device__ __forceinline__ void store_async(std::uint32_t address, std::uint32_t value,
                                            std::uint32_t barrier, unsigned rank) {
  asm volatile(
      "{.reg .b32 there, barrier_there;\n"
      "mapa.shared::cluster.u32 there, %0, %3;\n"
      "mapa.shared::cluster.u32 barrier_there, %2, %3;\n"
      "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [there], %1, "
      "[barrier_there];}\n" ::"r"(address),
      "r"(value), "r"(barrier), "r"(rank)
      : "memory");
}

}  // namespace rooflash::ptx
