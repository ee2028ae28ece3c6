// Rows as the driver makes and judges them.
#pragma once

#include <cstdint>

#include "core/record.hpp"
#include "sweep/plan.hpp"
#include "worker/protocol.hpp"

namespace rooflash {

// The row of a case before it ran: all that follows from its definition, status not_run. `repro`
// holds the measuring flags too where they are not the defaults.
Row blank_row(const Case& one, const DeviceInfo& device, const RunOptions& options,
              std::uint64_t seed);

// True where the row makes a run incomplete: it crashed, failed, hit the time limit, did not run,
// or ran out of memory though it should have fitted. A case that could never fit is complete.
bool is_incomplete(const Row& row);

}  // namespace rooflash
