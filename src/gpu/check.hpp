// Error checks and owners over the CUDA runtime. Always on; nothing here is policy.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <string>
#include <utility>

#include "core/error.hpp"

namespace rooflash {

// A CUDA call that failed. `sticky()` is true where the context is lost and only a new process
// helps.
class CudaError : public Error {
 public:
  CudaError(cudaError_t status, const std::string& what)
      : Error(ExitCode::incomplete, what), status_(status) {}
  cudaError_t status() const { return status_; }
  bool sticky() const;

 private:
  cudaError_t status_;
};

// Throws CudaError "<error name>: <text>, at <file>:<line>: <expression>" unless cudaSuccess.
void check_cuda(cudaError_t status, const char* expression, const char* file, int line);

#define ROOFLASH_CUDA(expression) \
  ::rooflash::check_cuda((expression), #expression, __FILE__, __LINE__)
// After every kernel launch.
#define ROOFLASH_CUDA_LAUNCHED() ROOFLASH_CUDA(cudaGetLastError())

// Plain cudaMalloc memory, freed at the end of its scope. Size 0 is a null pointer.
class DeviceBuffer {
 public:
  DeviceBuffer() = default;
  explicit DeviceBuffer(std::size_t bytes);
  ~DeviceBuffer();
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  template <class T = void>
  T* get() const {
    return static_cast<T*>(data_);
  }
  std::size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace rooflash
