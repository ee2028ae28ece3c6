// Short queries against many keys, as when decoding: the keys of a query tile are split among CTAs,
// each of which leaves an O and an LSE in the workspace, and a second kernel combines them.
//
// The idea is Flash-Decoding's (Dao, Haziza, Massa, Sizov, 2023); the kernels are forward.cuh's
// with `split`, and combine.cuh's.
#include "common/hopper/split.hpp"

#include <array>
#include <utility>

#include "common/element.cuh"
#include "common/hopper/combine.cuh"
#include "common/hopper/forward.cuh"
#include "common/hopper/running_maximum.cuh"
#include "common/hopper/tiles.hpp"

namespace rooflash::hopper {
namespace {

template <class T, std::size_t kTile>
__global__ void __launch_bounds__(kSplitTiles[kTile].config.threads(), 1)
    rf_split_fwd(const __grid_constant__ Arguments args) {
  forward<T, kSplitTiles[kTile].config, RunningMaximum>(args);
}

template <class T>
__global__ void __launch_bounds__(32 * kCombineWarps)
    rf_combine_fwd(const __grid_constant__ Arguments args) {
  combine<T>(args);
}

template <class T, std::size_t... kTile>
Prepared prepare_of(std::index_sequence<kTile...>, const Problem& p, const Tensors& t,
                    const DeviceLimits& device) {
  const std::array kernels{reinterpret_cast<const void*>(rf_split_fwd<T, kTile>)...};
  const std::size_t tile = choose(kSplitTiles, p);
  const Config& config = kSplitTiles[tile].config;
  return prepare(kernels[tile], config, p, t, device,
                 {splits_for(p, config), reinterpret_cast<const void*>(rf_combine_fwd<T>)});
}

}  // namespace

Prepared prepare_split(const Problem& p, const Tensors& t, const DeviceLimits& device) {
  constexpr auto kAll = std::make_index_sequence<std::size(kSplitTiles)>{};
  return p.dtype == DType::fp16 ? prepare_of<__half>(kAll, p, t, device)
                                : prepare_of<__nv_bfloat16>(kAll, p, t, device);
}

}  // namespace rooflash::hopper
