// From the traffic between SMs and L2 to the traffic between L2 and HBM. One rule for all kernels,
// from capacity and the tiles that run at once; nothing is fitted to single cells.
#pragma once

#include <cstdint>

#include "kernel.hpp"

namespace rooflash {

struct L2Cache {
  std::int64_t capacity_bytes = 0;
  double running_tiles = 1;  // tiles (CTAs) that the GPU runs at once
};

// HBM bytes, read and written, of one run.
//
// A stream is live with the bytes that its running tiles use: its share of the footprint, or the
// whole footprint where one launch writes it and a later one reads it. While the live bytes of all
// reused streams fit, each stream costs its footprint once. Beyond that, the part that does not fit
// is fetched again on each pass, and all of what is handed from launch to launch; tiles that sweep
// the same bytes side by side make one pass together. The last bytes written, a sixth of L2, are
// still there when the run ends.
double hbm_bytes(const Traffic& traffic, const L2Cache& cache);

}  // namespace rooflash
