// What fa3 is compiled for: the instantiation list, the dispatch table and the answer to
// "supported?".
#pragma once

#include "kernel.hpp"

namespace rooflash::fa3 {

inline constexpr unsigned kMasks = kMaskNone | kMaskCausal | kMaskCausalTopLeft | kMaskWindow;

inline constexpr Variant kVariants[] = {
    {Pass::fwd, 64, DType::bf16, kMasks, 90, 90},  {Pass::fwd, 64, DType::fp16, kMasks, 90, 90},
    {Pass::fwd, 96, DType::bf16, kMasks, 90, 90},  {Pass::fwd, 96, DType::fp16, kMasks, 90, 90},
    {Pass::fwd, 128, DType::bf16, kMasks, 90, 90}, {Pass::fwd, 128, DType::fp16, kMasks, 90, 90},
    {Pass::fwd, 192, DType::bf16, kMasks, 90, 90}, {Pass::fwd, 192, DType::fp16, kMasks, 90, 90},
    {Pass::fwd, 256, DType::bf16, kMasks, 90, 90}, {Pass::fwd, 256, DType::fp16, kMasks, 90, 90},
};

}  // namespace rooflash::fa3
