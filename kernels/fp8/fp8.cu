// FlashAttention-3's FP8 forward (sm_90a), with sums that leave the tensor cores where the problem
// asks for exact ones, and a lazily referenced softmax.
//
// Shah et al., "FlashAttention-3" (arXiv 2407.08608), section 3.3. The pipeline lies in
// forward.cuh, the softmax in softmax.cuh. Left out: V's transposition before the kernel. Expected
// limit: exponentials and the conversion of weights, tensor cores at head dim 256.
#include "common/hopper/table.cuh"
#include "fp8/forward.cuh"
#include "variants.hpp"

namespace rooflash::fp8 {

template <std::size_t kTile>
__global__ void __launch_bounds__(kTiles[kTile].config.threads(), 1)
    rf_fp8_fwd(const __grid_constant__ Arguments args) {
  forward<kTiles[kTile].config, LazyReference>(args);
}

template <std::size_t kTile, DType /*kDType: e4m3 alone*/>
struct Kernel {
  static constexpr auto* kFunction = rf_fp8_fwd<kTile>;
};

constexpr auto kPrepareTable = hopper::bind<kVariants, kTiles, Kernel>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::fp8
