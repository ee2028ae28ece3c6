// Host side of the Hopper pipeline: what a launch is given.
#pragma once

#include <cuda.h>

#include <memory>

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

// Map of a [batch, seqlen, heads, width] tensor in boxes of `columns`, 128 or 64 bytes with the
// swizzle of that width, and `rows` rows of one head. What lies outside the tensor is read as zeros
// and not written.
struct Box {
  int columns, rows;
};
CUtensorMap tensor_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                       std::int64_t heads, std::int64_t width, Box box);

// Counters of its own on the current device, at 0.
std::shared_ptr<Counters> make_counters();

// The launch of `kernel`, a __global__ function of what `args` points to, with a CTA an SM as far
// as there are tiles. `counters` are those in `args`. Throws as `prepare` does.
Prepared prepare_persistent(const void* kernel, int threads, std::int64_t smem_bytes, int tiles,
                            const DeviceLimits& device, std::shared_ptr<void> args,
                            std::shared_ptr<Counters> counters);

// The launch of `kernel`, a __global__ function of an Arguments that runs `forward` with `config`.
// Throws NotBuiltError where this binary was not built for sm_90a, Error where the driver refuses.
Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device);

}  // namespace rooflash::hopper
