// Turns a family's variant table into its dispatch table: one instantiation of `Prepare` per entry.
#pragma once

#include <array>
#include <cstddef>
#include <utility>

#include "kernel.hpp"

namespace rooflash {

// `Prepare` is a template over a Variant constant with a static `run` of PrepareFn's signature;
// `kTable` is the family's constexpr array of variants.
template <const auto& kTable, template <std::size_t> class Prepare, std::size_t... I>
constexpr std::array<PrepareFn, sizeof...(I)> bind_variants(std::index_sequence<I...>) {
  return {&Prepare<I>::run...};
}

template <const auto& kTable, template <std::size_t> class Prepare>
constexpr auto bind_variants() {
  return bind_variants<kTable, Prepare>(std::make_index_sequence<std::size(kTable)>{});
}

}  // namespace rooflash
