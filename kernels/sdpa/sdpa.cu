// Memory-efficient attention forward: on mma.sync for fp16 and bf16 (sm_80 and up), on FMA units
// for fp32, without TF32.
//
// Rabe and Staats, "Self-attention Does Not Need O(n^2) Memory" (arXiv 2112.05682): keys and values
// are streamed past a block of queries, with a running maximum and sum, so that no score reaches
// memory. One CTA a (query block, head, batch item). It is two products through shared memory, as a
// library of matrix products would build it: the warps split queries and keys of S, exchange the
// row maxima, and hand P over in shared memory to warps that split queries and columns of O.
// Expected limit: three barriers a step, and P's way through shared memory.
#include <cuda_runtime.h>

#include <type_traits>

#include "common/forward_arguments.cuh"
#include "common/launch.hpp"
#include "fma.cuh"
#include "mma.cuh"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash::sdpa {

template <class T, int kHeaddim>
auto* kernel_of() {
  if constexpr (std::is_same_v<T, float>) {
    return rf_sdpa_fwd_fp32<kHeaddim>;
  } else {
    return rf_sdpa_fwd<T, kHeaddim>;
  }
}

template <std::size_t kIndex>
struct Prepare {
  static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
    constexpr Variant kVariant = kVariants[kIndex];
    using C = std::conditional_t<kVariant.dtype == DType::fp32, FmaConfig<kVariant.headdim>,
                                 MmaConfig<kVariant.headdim>>;
    const ForwardArguments args = forward_arguments(p, t);
    const auto query_blocks = static_cast<int>((p.seqlen_q + C::kBlockM - 1) / C::kBlockM);
    const std::int64_t grid = p.batch * p.heads_q * query_blocks;
    auto* const kernel = kernel_of<Element<kVariant.dtype>, kVariant.headdim>();
    const Resources resources = prepare_kernel(reinterpret_cast<const void*>(kernel), kThreads,
                                               C::kSmemBytes, grid, device.sm_count);
    return {[kernel, args, query_blocks, grid](CUstream_st* stream) {
              kernel<<<static_cast<unsigned>(grid), kThreads, C::kSmemBytes, stream>>>(
                  args, query_blocks);
              check_launch(cudaGetLastError(), "launching rf_sdpa_fwd");
            },
            resources};
  }
};

constexpr auto kPrepareTable = bind_variants<kVariants, Prepare>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::sdpa
