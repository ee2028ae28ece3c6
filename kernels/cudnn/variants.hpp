// What cuDNN may be asked for. Its own limits change with its version, so they are not repeated
// here: it says them itself when a plan is built.
#pragma once

#include "kernel.hpp"

namespace rooflash::cudnn {

inline constexpr unsigned kMasks = kMaskNone | kMaskCausal | kMaskCausalTopLeft | kMaskWindow;
inline constexpr int kMaxHeaddim = 256;

inline constexpr Variant kVariants[] = {
    {Pass::fwd, kMaxHeaddim, DType::bf16, kMasks, 80, 999},
    {Pass::fwd, kMaxHeaddim, DType::fp16, kMasks, 80, 999},
    {Pass::fwd, kMaxHeaddim, DType::e4m3, kMasks, 90, 999},
};

}  // namespace rooflash::cudnn
