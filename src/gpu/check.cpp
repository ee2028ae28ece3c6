#include "gpu/check.hpp"

#include <fmt/format.h>

#include <string_view>

namespace rooflash {

bool CudaError::sticky() const {
  // A lost context answers every later call with the same error; a cleared one does not.
  (void)cudaGetLastError();
  return cudaDeviceSynchronize() != cudaSuccess;
}

void check_cuda(cudaError_t status, const char* expression, const char* file, int line) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();
  std::string_view path(file);
  path.remove_prefix(std::min(path.size(), path.find_last_of('/') + 1));
  throw CudaError(status, fmt::format("{}: {}, at {}:{}: {}", cudaGetErrorName(status),
                                      cudaGetErrorString(status), path, line, expression));
}

DeviceBuffer::DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes > 0) ROOFLASH_CUDA(cudaMalloc(&data_, bytes));
}

DeviceBuffer::~DeviceBuffer() {
  if (data_ != nullptr) (void)cudaFree(data_);
}

}  // namespace rooflash
