// Parts of a row that was measured on a GPU.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"
#include "gpu/nvml.hpp"
#include "kernel.hpp"
#include "measure/metrics.hpp"
#include "measure/timer.hpp"

namespace rooflash {

// Gives `row` its status; where that is not ok, takes away what only ok rows carry.
void end_row(Row& row, Status status, std::string reason);

// When each sample began, at steady_us().
Trace trace_of(const Timing& timing);

// The timing and the state of the card around it.
void add_timing(Row& row, Timing timing, const NvmlSnapshot& before, const NvmlSnapshot& after);

// What the counters of a case must show. `cold`: the L2 was flushed before.
CounterExpectation expected_counters(const Problem& problem, const Traffic& traffic, bool cold);

// A launch that ends up in another family's kernels must not carry this one's name. A family's own
// kernels live in namespace rooflash::NAME, a vendor's have Kernel::symbols in their names.
bool ran_family(const std::vector<std::string>& kernels_run, const Kernel& kernel);

}  // namespace rooflash
