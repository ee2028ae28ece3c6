// The lazily referenced softmax on FlashAttention-3's pipeline (sm_90a).
//
// rooflash's own: a row's maximum is looked for in its first and its masked key blocks alone. Later
// weights are taken against the same reference, far enough below the largest number that a row may
// grow by 2^120; a block that grows beyond is done again, exactly. See softmax.cuh; the rest is
// fa3's. Expected limit: as fa3, later.
#include <type_traits>

#include "common/hopper/forward.cuh"
#include "common/hopper/running_maximum.cuh"
#include "common/hopper/table.cuh"
#include "config.hpp"
#include "softmax.cuh"
#include "variants.hpp"

namespace rooflash::rf {

template <class T, std::size_t kTile>
__global__ void __launch_bounds__(kTiles[kTile].config.threads(), 1)
    rf_rf_fwd(const __grid_constant__ hopper::Arguments args) {
  constexpr hopper::Config kConfig = kTiles[kTile].config;
  using OfTile = std::conditional_t<is_lazy(kConfig), Softmax<T>, hopper::RunningMaximum>;
  hopper::forward<T, kConfig, OfTile>(args);
}

template <std::size_t kTile, DType kDType>
struct Kernel {
  static constexpr auto* kFunction = rf_rf_fwd<Element<kDType>, kTile>;
};

constexpr auto kPrepareTable = hopper::bind<kVariants, kTiles, Kernel>();
extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::rf
