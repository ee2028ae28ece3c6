// The device that a CounterSession counts on. Apart from it, because this half needs the CUDA
// runtime.
#include <cuda_runtime.h>

#include "gpu/check.hpp"
#include "gpu/driver.hpp"
#include "measure/counters.hpp"

namespace rooflash {

CounterTarget counter_target(int ordinal) {
  CounterTarget target;
  target.ordinal = ordinal;
  target.synchronize = [] { ROOFLASH_CUDA(cudaDeviceSynchronize()); };
  auto* const current = driver_entry<CUresult(CUcontext*)>("cuCtxGetCurrent", 4000);
  if (current == nullptr || current(&target.context) != CUDA_SUCCESS) target.context = nullptr;
  return target;
}

}  // namespace rooflash
