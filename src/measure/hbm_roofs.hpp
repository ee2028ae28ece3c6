// The rates of device memory, by own kernels and the runtime's transfers.
#pragma once

#include <cuda_runtime.h>

#include "core/record.hpp"
#include "measure/roof_timer.hpp"
#include "measure/unit_roofs.hpp"

namespace rooflash {

// Fills the HBM rates of `ceilings`: the best of a few launch grids; a copy counts the bytes read
// and the bytes written. Allocates two buffers of 4 GiB, or of a third of the free memory if that
// is less.
void measure_hbm(Ceilings& ceilings, int sm_count, RoofTimer& timer);

// The faster of a kernel's and the runtime's copy over the same buffers; work: bytes read and
// written.
UnitLoop hbm_copy_loop(int sm_count, RoofTimer& timer);

}  // namespace rooflash
