// How far weights may grow before a block is done again. CUDA-free: the host algorithm reads it.
#pragma once

namespace rooflash::rf {

// For the sum of the weights that a thread has of a row's block. bf16 reaches as far as fp32: this
// leaves 2^63 for what is summed up over keys and for V. fp16 ends at 2^16.
inline constexpr float kLargestBf16 = 0x1p64F;
inline constexpr float kLargestFp16 = 0x1p15F;

}  // namespace rooflash::rf
