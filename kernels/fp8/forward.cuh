// Forward attention in e4m3 on Hopper, after Shah et al., "FlashAttention-3" (arXiv 2407.08608),
// sections 3.1 to 3.3. CTAs are persistent, one an SM, and take query tiles from a counter until
// none is left. In a CTA, two to four warpgroups compute (wgmma), 64 query rows each; of one more,
// a thread and three warps work, and all wait for one another at mbarriers:
//   load        takes tiles, writes notes on them, loads Q, K and V, key blocks from last to first
//   transpose   transposes V from the stages in which it is loaded to those that wgmma reads
//   compute     the Consumers, which also store O
// In each step a warpgroup issues the scores of a key block together with P V of the block before,
// and makes weights of the scores while P V runs; how, its Softmax says (softmax.cuh).
#pragma once

#include "common/ptx/warpgroup.cuh"
#include "fp8/consumer.cuh"
#include "fp8/producer.cuh"

namespace rooflash::fp8 {

// Launched with as many CTAs as SMs, at most one a tile.
template <Config kConfig, class Softmax>
__device__ __forceinline__ void forward(const Arguments& args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL  // other architectures' code is never run: see `prepare`
  extern __shared__ unsigned char smem_raw[];
  const Smem<kConfig> smem(smem_raw);
  if (threadIdx.x == 0) {
    smem.init();
    ptx::tma_prefetch(&args.q);
    ptx::tma_prefetch(&args.k);
    ptx::tma_prefetch(&args.v);
    ptx::tma_prefetch(&args.o);
  }
  __syncthreads();
  if (threadIdx.x < 128) {
    ptx::give_up_registers_above<kConfig.producer_registers()>();
    if (threadIdx.x == 0) {
      load(args, smem);
    } else if (threadIdx.x >= 32) {
      transpose(smem);
    }
  } else {
    ptx::take_registers_up_to<kConfig.consumer_registers()>();
    Consumer<kConfig, Softmax>(args, smem).run();
  }
#endif
}

}  // namespace rooflash::fp8
