// Versions that decide whether two figures may be compared. Raise one when its rule changes.
#pragma once

#include <string_view>

namespace rooflash {

inline constexpr int kRecordSchema = 1;
// FLOPs = 2 b hq pairs (d + dv) forward, 2 b hq pairs (3 d + 2 dv) backward, exact pairs.
inline constexpr std::string_view kFlopConvention = "exact-pairs-v1";
inline constexpr std::string_view kVerifyRule = "emulation-2x-1.5x-v1";
inline constexpr std::string_view kInputsVersion = "inputs-v1";

}  // namespace rooflash
