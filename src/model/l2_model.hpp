// From the traffic between SMs and L2 to the traffic between L2 and HBM. One rule for all kernels,
// from capacity and the tiles that run at once; nothing is fitted to single cells.
#pragma once

#include <cstdint>

#include "kernel.hpp"

namespace rooflash {

struct L2Cache {
  std::int64_t capacity_bytes = 0;
  double running_tiles = 1;  // tiles (CTAs) that the GPU runs at once
  double partitions = 1;     // parts of L2 that each keep a copy of what their own SMs read
};

// HBM bytes, read and written, of one run.
//
// A stream is live with the bytes that its running tiles use: its share of the footprint, or the
// whole footprint where one launch writes it and a later one reads it. While the live bytes of all
// reused streams fit, copies in the other partition counted, each stream costs its footprint once.
// Beyond that more and more of it is fetched again on each pass, all at one and a half times L2;
// tiles that sweep the same bytes side by side make one pass together. Of what is handed from
// launch to launch, in one sweep that writes and one that reads, less is left the larger it is:
// half at 0.7 of L2, nothing at twice L2. What was written is still in L2 when the run ends where
// it is among the last bytes, as many as L2 holds, that came in.
double hbm_bytes(const Traffic& traffic, const L2Cache& cache);

}  // namespace rooflash
