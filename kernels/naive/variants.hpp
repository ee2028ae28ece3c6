// What the naive family is compiled for. Head dims are limited by the softmax scale alone: the
// GEMMs take any.
#pragma once

#include "kernel.hpp"

namespace rooflash::naive {

inline constexpr unsigned kMasks = kMaskNone | kMaskCausal | kMaskCausalTopLeft | kMaskWindow;
inline constexpr int kMaxHeaddim = 512;

inline constexpr Variant kVariants[] = {
    {Pass::fwd, kMaxHeaddim, DType::bf16, kMasks, 80, 999},
    {Pass::fwd, kMaxHeaddim, DType::fp16, kMasks, 80, 999},
    {Pass::fwd, kMaxHeaddim, DType::fp32, kMasks, 80, 999},
};

}  // namespace rooflash::naive
