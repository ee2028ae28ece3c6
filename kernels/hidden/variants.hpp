// What the test families are compiled for. They misbehave on purpose, to prove that a bad kernel
// costs one row and never passes.
#pragma once

#include "kernel.hpp"

namespace rooflash::hidden {

inline constexpr unsigned kMasks = kMaskNone | kMaskCausal | kMaskCausalTopLeft | kMaskWindow;

inline constexpr Variant kVariants[] = {
    {Pass::fwd, 128, DType::bf16, kMasks, 80, 999},
    {Pass::fwd, 128, DType::fp16, kMasks, 80, 999},
};

}  // namespace rooflash::hidden
