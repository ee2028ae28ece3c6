// The energy of a launch, by the board's own counter.
#pragma once

#include "core/record.hpp"
#include "gpu/nvml.hpp"
#include "kernel.hpp"
#include "measure/timer.hpp"

namespace rooflash {

// Fills `row.energy`: mean power while launches run back to back, times their duration; or notes
// why there is none. Takes over a second.
void measure_energy(Timer& timer, const Nvml& nvml, const Launch& launch, Row& row);

}  // namespace rooflash
