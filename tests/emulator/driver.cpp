// The CUDA runtime as far as launches of the Hopper kernels use it, and their host code on top of
// it. A kernel is a function of void*, which points to its one argument.
#include <cuda_runtime.h>

#include <cstdlib>
#include <cstring>
#include <string>

#include "common/hopper/arguments.cu"
#include "common/launch.hpp"
#include "core/error.hpp"
#include "fp8/arguments.cu"
#include "machine.hpp"

namespace {

CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* data,
                const cuuint64_t* sizes, const cuuint64_t* strides_bytes, const cuuint32_t* box,
                const cuuint32_t* /*steps*/, CUtensorMapInterleave, CUtensorMapSwizzle swizzle,
                CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  machine::TensorMap result{};
  result.data = static_cast<unsigned char*>(data);
  result.rank = static_cast<int>(rank);
  result.element_bytes = type == CU_TENSOR_MAP_DATA_TYPE_UINT8 ? 1 : 2;
  bool fine = rank <= 5 && reinterpret_cast<std::uintptr_t>(data) % 16 == 0;
  for (unsigned i = 0; i < rank; ++i) {
    result.size[i] = static_cast<std::int64_t>(sizes[i]);
    result.stride[i] =
        i == 0 ? result.element_bytes : static_cast<std::int64_t>(strides_bytes[i - 1]);
    result.box[i] = static_cast<int>(box[i]);
    fine = fine && sizes[i] > 0 && box[i] > 0 && box[i] <= 256;
    fine = fine && (i == 0 || result.stride[i] % 16 == 0);
  }
  const int width = swizzle == CU_TENSOR_MAP_SWIZZLE_128B  ? 128
                    : swizzle == CU_TENSOR_MAP_SWIZZLE_64B ? 64
                                                           : 32;
  // The hardware takes narrower boxes too, which no kernel has.
  fine = fine && result.box[0] * result.element_bytes == width;
  if (!fine) return CUDA_ERROR_INVALID_VALUE;
  static_assert(sizeof result <= sizeof *map);
  std::memcpy(map, &result, sizeof result);
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = std::malloc(bytes);
  std::memset(*memory, 0xFF, bytes);  // NaN
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) {
  return cudaSuccess;
}
cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* found) {
  *function = reinterpret_cast<void*>(encode);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  const auto kernel = reinterpret_cast<void (*)(void*)>(const_cast<void*>(function));
  unsigned cluster = 1;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    if (config->attrs[i].id != cudaLaunchAttributeClusterDimension) return cudaErrorInvalidValue;
    cluster = config->attrs[i].val.clusterDim.x;
  }
  if (config->gridDim.x == 0 || config->gridDim.x % cluster != 0) return cudaErrorInvalidValue;
  machine::run(config->gridDim.x, cluster, static_cast<int>(config->blockDim.x),
               static_cast<std::int64_t>(config->dynamicSmemBytes), [&] { kernel(arguments[0]); });
  return cudaSuccess;
}

}  // extern "C"

namespace rooflash {

void check_launch(cudaError_t status, const char* what) {
  if (status != cudaSuccess) throw Error(ExitCode::incomplete, what);
}
Resources prepare_kernel(const void*, int, std::int64_t, std::int64_t, int) {
  return {};
}

}  // namespace rooflash
