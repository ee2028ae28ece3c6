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

// What CTAs leave of each part of the keys, with `split`: the results as if there were no others.
struct Parts {
  int count;          // 1 without
  std::int64_t rows;  // batch x heads x queries, in this order
  float* o;           // [count, rows, headdim_v]
  float* lse;         // [count, rows], natural log
};

struct Arguments {
  CUtensorMap q, k, v, o;
  ForwardArguments problem;
  int band_first, band_last;  // of problem.band
  Schedule schedule;
  Counters* counters;
  Parts parts;
  int group_log2;  // of packed_heads
};

// Into how many parts keys are cut, and a __global__ function of an Arguments that runs `combine`.
struct Splitting {
  int count = 1;  // at most kMostSplits; without `split` no matter
  const void* combine = nullptr;
};

// Of a [batch, seqlen, heads, width] tensor in boxes of `box_rows` rows of one head and
// `box_columns`, which are 128 or 64 bytes.
CUtensorMap rows_map(DType dtype, const void* data, std::int64_t batch, std::int64_t seqlen,
                     std::int64_t heads, std::int64_t width, int box_rows, int box_columns = 64);

// Counters of its own on the current device, at 0.
std::shared_ptr<Counters> make_counters();

// The launch of `kernel`, a __global__ function of what `args` points to, with a CTA an SM as far
// as there are tiles. `counters` are those in `args`. Throws as `prepare` does.
Prepared prepare_persistent(const void* kernel, int threads, int smem_bytes, int tiles,
                            const DeviceLimits& device, std::shared_ptr<void> args,
                            std::shared_ptr<Counters> counters);

// The launch of `kernel`, a __global__ function of an Arguments that runs `forward` with `config`;
// with `config.split`, the one that combines the parts follows it. Throws NotBuiltError where this
// binary was not built for sm_90a, Error where the driver refuses. The parts lie in t.workspace,
// parts_bytes(p, splitting.count) bytes of it.
Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device, const Splitting& splitting = {});

}  // namespace rooflash::hopper
