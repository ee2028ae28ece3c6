// Host side of the Hopper pipeline: what a launch is given.
#pragma once

#include <cuda.h>

#include "common/forward_arguments.cuh"
#include "common/hopper/config.hpp"
#include "common/hopper/schedule.hpp"

namespace rooflash::hopper {

// Tiles taken from the schedule beyond the first of each CTA, and CTAs that are done. The last CTA
// sets both back to 0 for the next launch; so launches that share them must follow one another.
struct Counters {
  unsigned taken;
  unsigned done;
};

struct Arguments {
  CUtensorMap q, k, v, o;
  ForwardArguments problem;
  int band_first, band_last;  // of problem.band
  Schedule schedule;
  Counters* counters;
};

// The launch of `kernel`, a __global__ function of an Arguments that runs `forward` with `config`.
// Throws NotBuiltError where this binary was not built for sm_90a, Error where the driver refuses.
Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device);

}  // namespace rooflash::hopper
