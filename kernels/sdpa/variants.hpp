// What sdpa is compiled for: the instantiation list, the dispatch table and the answer to
// "supported?".
#pragma once

#include "kernel.hpp"

namespace rooflash::sdpa {

inline constexpr unsigned kMasks = kMaskNone | kMaskCausal | kMaskCausalTopLeft | kMaskWindow;

inline constexpr Variant kVariants[] = {
    {Pass::fwd, 64, DType::bf16, kMasks, 80, 999},  {Pass::fwd, 64, DType::fp16, kMasks, 80, 999},
    {Pass::fwd, 64, DType::fp32, kMasks, 80, 999},  {Pass::fwd, 128, DType::bf16, kMasks, 80, 999},
    {Pass::fwd, 128, DType::fp16, kMasks, 80, 999}, {Pass::fwd, 128, DType::fp32, kMasks, 80, 999},
    {Pass::fwd, 256, DType::bf16, kMasks, 80, 999}, {Pass::fwd, 256, DType::fp16, kMasks, 80, 999},
    {Pass::fwd, 256, DType::fp32, kMasks, 80, 999},
};

}  // namespace rooflash::sdpa
