// The profiler around this process, by the traces it leaves.
#pragma once

#include <string>

namespace rooflash {

// "Nsight Compute", from the environment variables that the tools set for what they start; several
// are joined by " and ", "" for none. The variables are undocumented, so this is a hint, which
// `--counters force` overrides: CUPTI itself has the last word. DCGM leaves no trace; it shows as
// counters that are busy.
std::string outer_tool();

}  // namespace rooflash
