// Entry points of the CUDA driver, fetched through the runtime: nothing links libcuda, so that the
// worker starts (and explains itself) where there is no driver.
#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

namespace rooflash {

// The driver's `symbol` as of CUDA `version` (12000 for 12.0); nullptr where the driver lacks it.
template <class Function>
Function* driver_entry(const char* symbol, unsigned version) {
  void* address = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const cudaError_t status =
      cudaGetDriverEntryPointByVersion(symbol, &address, version, cudaEnableDefault, &found);
  if (status != cudaSuccess || found != cudaDriverEntryPointSuccess) {
    (void)cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<Function*>(address);
}

}  // namespace rooflash
