// What `rooflash doctor` checks of the machine, whatever its GPUs.
#pragma once

#include <vector>

#include "worker/doctor/check.hpp"

namespace rooflash {

// build, worker, tool, runs_folder, current_folder, mps; in this order, each once.
std::vector<DoctorCheck> host_checks();

}  // namespace rooflash
