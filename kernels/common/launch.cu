#include <string>

#include "common/code_size.hpp"
#include "common/launch.hpp"
#include "core/error.hpp"

namespace rooflash {

void check_launch(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  throw Error(ExitCode::incomplete, std::string(what) + ": " + cudaGetErrorName(status) + ": " +
                                        cudaGetErrorString(status));
}

Resources prepare_kernel(const void* function, int threads, std::int64_t smem_bytes,
                         std::int64_t grid, int sm_count) {
  cudaFuncAttributes attributes{};
  const cudaError_t found = cudaFuncGetAttributes(&attributes, function);
  if (found == cudaErrorNoKernelImageForDevice || found == cudaErrorInvalidDeviceFunction) {
    (void)cudaGetLastError();
    throw NotBuiltError("this build holds no code for the device's architecture");
  }
  check_launch(found, "cudaFuncGetAttributes");
  if (smem_bytes > 48 * 1024) {
    check_launch(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                      static_cast<int>(smem_bytes)),
                 "raising the dynamic shared memory limit");
  }
  int blocks_per_sm = 0;
  check_launch(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks_per_sm, function, threads,
                                                             static_cast<std::size_t>(smem_bytes)),
               "cudaOccupancyMaxActiveBlocksPerMultiprocessor");
  Resources resources;
  resources.registers = attributes.numRegs;
  resources.spill_bytes = static_cast<std::int64_t>(attributes.localSizeBytes);
  resources.smem_bytes = static_cast<std::int64_t>(attributes.sharedSizeBytes) + smem_bytes;
  resources.threads = threads;
  resources.grid = grid;
  const char* symbol = nullptr;
  check_launch(cudaFuncGetName(&symbol, function), "cudaFuncGetName");
  resources.code_bytes = own_code_bytes(symbol, attributes.binaryVersion);
  if (blocks_per_sm > 0) {
    resources.waves = static_cast<double>(grid) / (static_cast<double>(blocks_per_sm) * sm_count);
  }
  return resources;
}

}  // namespace rooflash
