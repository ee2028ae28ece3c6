// A cuBLAS matrix product of known size: the tensor roof, and a proof of the counters.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "core/dtype.hpp"
#include "core/problem.hpp"
#include "gpu/check.hpp"

namespace rooflash {

// C = A B with n x n matrices of random values, fp32 accumulation; the result has the input type,
// bf16 for e4m3. fp32 runs without tensor cores (no tf32).
class Gemm {
 public:
  // Throws Error where cuBLAS has no algorithm for the type on this device.
  Gemm(DType dtype, int n, cudaStream_t stream);
  ~Gemm();
  Gemm(const Gemm&) = delete;
  Gemm& operator=(const Gemm&) = delete;

  void operator()(cudaStream_t stream) const;
  double flops() const { return 2.0 * n_ * n_ * n_; }

 private:
  void release();
  int n_;
  DeviceBuffer a_;
  DeviceBuffer b_;
  DeviceBuffer c_;
  DeviceBuffer workspace_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t input_ = nullptr;
  cublasLtMatrixLayout_t output_ = nullptr;
  cublasLtMatmulHeuristicResult_t choice_{};
};

// Fills `count` values of `dtype` with about normal random values, variance 1, never all zero.
void fill_random(DType dtype, void* data, std::int64_t count, unsigned seed, cudaStream_t stream);

}  // namespace rooflash
