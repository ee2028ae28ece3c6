// The ceilings of a device, measured once per GPU and driver.
#pragma once

#include "core/record.hpp"
#include "worker/driver/connection.hpp"

namespace rooflash {

// From XDG_STATE_HOME/rooflash/ceilings where this GPU and driver were measured before and
// `refresh` is false, else from the worker, and kept there. A simulated device's are never kept.
// `sustained` asks for the roofs under lasting load too, a minute or so where they are not kept.
// Under a profiler they are not measured unless `refresh` asks for it, and never kept. Throws
// Error(incomplete) then, and what Connection::ceilings() throws; a folder that cannot be written
// only means measuring again.
Ceilings device_ceilings(Connection& connection, const Hello& hello, bool refresh,
                         bool sustained = false);

}  // namespace rooflash
