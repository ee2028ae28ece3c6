// Forward attention on Hopper, after Shah et al., "FlashAttention-3" (arXiv 2407.08608),
// sections 3.1 and 3.2. CTAs are persistent, one an SM, and take query tiles from a counter until
// none is left. In a CTA, two to four warpgroups compute (wgmma), 64 query rows each; of one more,
// three threads work, and all wait for one another at mbarriers:
//   plan        takes tiles, writes notes on them, loads Q
//   load        loads K and V, key blocks from last to first, through rings of stages
//   compute     the Consumers
//   store       writes O, which the consumers leave where Q was
// With `split` a tile's keys are cut into parts, each the work of a CTA; consumers store O and LSE
// of a part, in fp32, and another kernel combines them (combine.cuh).
// With `pair` the two CTAs of a cluster have a pair of tiles, which rank 0's `plan` takes, and what
// the `load` of either brings goes to both.
// In each step a warpgroup issues the scores of a key block together with P V of the block before,
// and makes weights of the scores while P V runs.
//
// Families differ in their Softmax alone: a RowSoftmax (softmax.cuh) that adds
//   kKeepsKeys      whether it may ask for scores again after it has made weights of them
//   fast(s, again)  weights of a block that all rows see, also of rows that saw no key before;
//                   `again(rows)` makes scores of these rows once more
// The others, masked blocks and a tile's first, get their weights from RowSoftmax::exact.
#pragma once

#include "common/hopper/consumer.cuh"
#include "common/hopper/producer.cuh"
#include "common/ptx/warpgroup.cuh"

namespace rooflash::hopper {

// Launched with as many CTAs as SMs, at most one a tile; with `pair` in clusters of two.
template <class T, Config kConfig, class Softmax>
__device__ __forceinline__ void forward(const Arguments& args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // other architectures' code is never run: see `prepare`
  extern __shared__ unsigned char smem_raw[];
  const Smem<kConfig> smem(smem_raw);
  if (threadIdx.x == 0) {
    smem.init();
    ptx::tma_prefetch(&args.q);
    ptx::tma_prefetch(&args.k);
    ptx::tma_prefetch(&args.v);
    if constexpr (!kConfig.split) ptx::tma_prefetch(&args.o);
  }
  if constexpr (kConfig.pair) {
    ptx::cluster_sync_relaxed();
  } else {
    __syncthreads();
  }
  if (threadIdx.x < 128) {
    ptx::give_up_registers_above<kConfig.producer_registers()>();
    if (threadIdx.x == 0) {
      plan(args, smem);
    } else if (threadIdx.x == 32) {
      load(args, smem);
    } else if (threadIdx.x == 64 && !kConfig.consumers_free_query()) {
      store(args, smem);
    }
  } else {
    ptx::take_registers_up_to<kConfig.consumer_registers()>();
    Consumer<T, kConfig, Softmax>(args, smem).run();
  }
  // A CTA's barriers are there until the other has arrived at them for the last time.
  if constexpr (kConfig.pair) ptx::cluster_sync();
#endif
}

}  // namespace rooflash::hopper
