// What fp8 is compiled for: the instantiation list, the dispatch table and the answer to
// "supported?". Each of these twice, for the two ways to sum up (option accum): see config.hpp.
#pragma once

#include "kernel.hpp"

namespace rooflash::fp8 {

inline constexpr unsigned kMasks = kMaskNone | kMaskCausal | kMaskCausalTopLeft | kMaskWindow;

inline constexpr Variant kVariants[] = {
    {Pass::fwd, 64, DType::e4m3, kMasks, 90, 90},
    {Pass::fwd, 128, DType::e4m3, kMasks, 90, 90},
    {Pass::fwd, 256, DType::e4m3, kMasks, 90, 90},
};

}  // namespace rooflash::fp8
