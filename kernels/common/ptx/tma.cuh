// The copy engine (TMA): tiles of 4- and 5-dimensional tensors between global and shared memory,
// described by a tensor map (sm_90). PTX ISA, "Data Movement and Conversion Instructions:
// cp.async.bulk.tensor".
#pragma once

#include <cuda.h>

#include <cstdint>

namespace rooflash::ptx {

// What L2 is told about lines that a copy brings in.
__device__ __forceinline__ std::uint64_t evict_first() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}
__device__ __forceinline__ std::uint64_t evict_last() {
  std::uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;\n" : "=l"(policy));
  return policy;
}

// Element coordinates of a box's corner, innermost first: (column, head, row, batch item).
struct Corner {
  int column, head, row, batch;
};
// The same in a tensor whose heads are those of a group, and groups. Not made of a bare list, which
// stands for a Corner.
struct GroupCorner {
  __device__ __forceinline__ GroupCorner(int of_column, int of_member, int of_group, int of_row,
                                         int of_batch)
      : column(of_column), member(of_member), group(of_group), row(of_row), batch(of_batch) {}
  int column, member, group, row, batch;
};

__device__ __forceinline__ void tma_prefetch(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];\n" ::"l"(map) : "memory");
}

// Copies the map's box to `target` and counts its bytes, also those outside the tensor, which
// become zeros, at `barrier`. One thread.
__device__ __forceinline__ void tma_load(std::uint32_t target, const CUtensorMap* map, Corner at,
                                         std::uint32_t barrier, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7;\n" ::"r"(target),
      "l"(map), "r"(at.column), "r"(at.head), "r"(at.row), "r"(at.batch), "r"(barrier), "l"(policy)
      : "memory");
}

__device__ __forceinline__ void tma_load(std::uint32_t target, const CUtensorMap* map,
                                         GroupCorner at, std::uint32_t barrier,
                                         std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".L2::cache_hint [%0], [%1, {%2, %3, %4, %5, %6}], [%7], %8;\n" ::"r"(target),
      "l"(map), "r"(at.column), "r"(at.member), "r"(at.group), "r"(at.row), "r"(at.batch),
      "r"(barrier), "l"(policy)
      : "memory");
}

// The same to the CTAs of the cluster that bits of `ctas` name, in each to the same place and
// counted at its own barrier.
__device__ __forceinline__ void tma_load_multicast(std::uint32_t target, const CUtensorMap* map,
                                                   Corner at, std::uint32_t barrier,
                                                   std::uint16_t ctas, std::uint64_t policy) {
  asm volatile(
      "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      ".multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %4, %5}], [%6], %7, %8;\n" ::"r"(
          target),
      "l"(map), "r"(at.column), "r"(at.head), "r"(at.row), "r"(at.batch), "r"(barrier), "h"(ctas),
      "l"(policy)
      : "memory");
}

// Brings the map's box into L2.
__device__ __forceinline__ void tma_prefetch_l2(const CUtensorMap* map, Corner at) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.4d.L2.global.tile [%0, {%1, %2, %3, %4}];\n" ::"l"(map),
      "r"(at.column), "r"(at.head), "r"(at.row), "r"(at.batch)
      : "memory");
}

__device__ __forceinline__ void tma_prefetch_l2(const CUtensorMap* map, GroupCorner at) {
  asm volatile(
      "cp.async.bulk.prefetch.tensor.5d.L2.global.tile [%0, {%1, %2, %3, %4, %5}];\n" ::"l"(map),
      "r"(at.column), "r"(at.member), "r"(at.group), "r"(at.row), "r"(at.batch)
      : "memory");
}

// Copies a box back, its part outside the tensor left out. One thread; `fence_proxy_async` by those
// that wrote the box, and a barrier among them, come before.
__device__ __forceinline__ void tma_store(const CUtensorMap* map, Corner at, std::uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4}], "
      "[%5];\n" ::"l"(map),
      "r"(at.column), "r"(at.head), "r"(at.row), "r"(at.batch), "r"(source)
      : "memory");
}
__device__ __forceinline__ void tma_store(const CUtensorMap* map, GroupCorner at,
                                          std::uint32_t source) {
  asm volatile(
      "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%1, %2, %3, %4, %5}], "
      "[%6];\n" ::"l"(map),
      "r"(at.column), "r"(at.member), "r"(at.group), "r"(at.row), "r"(at.batch), "r"(source)
      : "memory");
}
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;\n" ::: "memory");
}
// Until the shared memory of this thread's stores may be written again.
__device__ __forceinline__ void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read 0;\n" ::: "memory");
}

}  // namespace rooflash::ptx
