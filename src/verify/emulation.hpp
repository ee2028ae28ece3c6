// What the emulations on the CPU and the GPU have in common.
#pragma once

namespace rooflash {

// Halfway between two values of e4m3, and below the largest: a row's largest weight, in e4m3.
inline constexpr float kTopWeight = 136;

}  // namespace rooflash
