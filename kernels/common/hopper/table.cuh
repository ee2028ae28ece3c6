// A Hopper family's dispatch table, from its variants and its tiles.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "common/element.cuh"
#include "common/hopper/arguments.cuh"
#include "common/hopper/split.hpp"
#include "common/hopper/tiles.hpp"
#include "prepare.hpp"

namespace rooflash::hopper {

// One PrepareFn a variant, which launches the tile that the problem takes. Kernel<tile, dtype>
// names the __global__ functions of those that are the family's own.
template <const auto& kVariants, const auto& kTiles, template <std::size_t, DType> class Kernel>
struct Table {
  // The function of a tile, where the variant can take it.
  template <std::size_t kVariant, std::size_t kTile>
  static const void* function() {
    if constexpr (kTiles[kTile].config.headdim == kVariants[kVariant].headdim) {
      return reinterpret_cast<const void*>(Kernel<kTile, kVariants[kVariant].dtype>::kFunction);
    } else {
      return nullptr;
    }
  }
  template <std::size_t kVariant>
  struct Prepare {
    static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
      return pick(std::make_index_sequence<std::size(kTiles)>{}, p, t, device);
    }
    template <std::size_t... kTile>
    static Prepared pick(std::index_sequence<kTile...>, const Problem& p, const Tensors& t,
                         const DeviceLimits& device) {
      const std::array<const void*, sizeof...(kTile)> functions{function<kVariant, kTile>()...};
      if constexpr (std::is_same_v<decltype(kTiles[0].config), Config>) {
        if (takes_split(p, split_tile(p).config)) return prepare_split(p, t, device);
      }
      const std::size_t tile = choose(kTiles, p);
      return prepare(functions[tile], kTiles[tile].config, p, t, device);
    }
  };
};

template <const auto& kVariants, const auto& kTiles, template <std::size_t, DType> class Kernel>
constexpr auto bind() {
  return bind_variants<kVariants, Table<kVariants, kTiles, Kernel>::template Prepare>();
}

}  // namespace rooflash::hopper
