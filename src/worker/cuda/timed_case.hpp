// The timed part of a case.
#pragma once

#include "core/record.hpp"
#include "gpu/nvml.hpp"
#include "kernel.hpp"
#include "measure/timer.hpp"
#include "worker/backend.hpp"

namespace rooflash {

// Warms up and times the launch, with what the board says before and after: `time_us`, clocks,
// throttling, trace, and `energy` under sustained power.
void time_launch(Timer& timer, const Nvml& nvml, const RunOptions& options, const Launch& launch,
                 const PhaseSink& phase, Row& row);

// Times what quantises the inputs of a row that has been timed: `quantize_us` and
// `time_with_quantize_us`.
void time_quantizing(Timer& timer, const RunOptions& options, const Launch& quantize,
                     const PhaseSink& phase, Row& row);

}  // namespace rooflash
