// FlashAttention-3 forward on wgmma and TMA (sm_90a).
//
// Shah et al., "FlashAttention-3" (arXiv 2407.08608), section 3 without 3.3: producer and consumer
// warpgroups, and the softmax of one key block while the products of its neighbours run. All of it
// lies in common/hopper/: the pipeline in forward.cuh, the softmax in running_maximum.cuh. Left
// out: FP8, backward, dropout. Expected limit: tensor cores at the clock that the power cap leaves;
// at head dim 64 the exponentials.
#include "common/hopper/forward.cuh"
#include "common/hopper/running_maximum.cuh"
#include "common/hopper/table.cuh"
#include "config.hpp"
#include "variants.hpp"

namespace rooflash::fa3 {

template <class T, std::size_t kTile>
__global__ void __launch_bounds__(kTiles[kTile].config.threads(), 1)
    rf_fa3_fwd(const __grid_constant__ hopper::Arguments args) {
  hopper::forward<T, kTiles[kTile].config, hopper::RunningMaximum>(args);
}

template <std::size_t kTile, DType kDType>
struct Kernel {
  static constexpr auto* kFunction = rf_fa3_fwd<Element<kDType>, kTile>;
};

constexpr auto kPrepareTable = hopper::bind<kVariants, kTiles, Kernel>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::fa3
