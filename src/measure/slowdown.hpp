// Kernels made slower by a known part, to prove that a gate finds it. Only in builds with
// -DROOFLASH_SLOWDOWN=ON; rows of such a build are for nothing else.
#pragma once

#include <string_view>

#include "kernel.hpp"

namespace rooflash {

// `launch`, and after it a wait for a part of the time that it took, as ROOFLASH_SLOWDOWN says for
// this kernel ("fa2=0.03", several with commas). A part of 0 adds the two small launches alone, for
// a base that differs in nothing but the wait. A kernel that is not named stays as it is. Throws
// UsageError where the variable is malformed.
Launch slowed_down(Launch launch, std::string_view kernel);

}  // namespace rooflash
