#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstdint>
#include <string>

#include "measure/gemm.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kWorkspaceBytes = 64U << 20;

// A bijective mix of 32 bits, so that neighbouring indices give unrelated values.
__device__ inline unsigned mix(unsigned x) {
  x ^= x >> 16;
  x *= 0x21f0aaadU;
  x ^= x >> 15;
  x *= 0xd35a2d97U;
  x ^= x >> 15;
  return x;
}

template <class T>
__global__ void fill(T* data, std::int64_t count, unsigned seed) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += step) {
    const unsigned bits =
        mix(static_cast<unsigned>(i) ^ mix(seed + static_cast<unsigned>(i >> 32)));
    // Four bytes of uniform noise: their sum is close to normal.
    float sum = -2.0F;
    for (int byte = 0; byte < 4; ++byte) {
      sum += (static_cast<float>((bits >> (8 * byte)) & 255U) + 0.5F) / 256.0F;
    }
    data[i] = static_cast<T>(sum * 1.7320508F);
  }
}

template <class T>
void launch_fill(void* data, std::int64_t count, unsigned seed, cudaStream_t stream) {
  fill<<<2048, 256, 0, stream>>>(static_cast<T*>(data), count, seed);
  ROOFLASH_CUDA_LAUNCHED();
}

cudaDataType_t cuda_type(DType dtype) {
  switch (dtype) {
    case DType::fp32:
      return CUDA_R_32F;
    case DType::fp16:
      return CUDA_R_16F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
  }
  return CUDA_R_32F;
}

void check_cublas(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ExitCode::incomplete, std::string(call) + ": " + cublasLtGetStatusString(status));
}
#define ROOFLASH_CUBLAS(call) check_cublas((call), #call)

}  // namespace

void fill_random(DType dtype, void* data, std::int64_t count, unsigned seed, cudaStream_t stream) {
  switch (dtype) {
    case DType::fp32:
      return launch_fill<float>(data, count, seed, stream);
    case DType::fp16:
      return launch_fill<__half>(data, count, seed, stream);
    case DType::bf16:
      return launch_fill<__nv_bfloat16>(data, count, seed, stream);
    case DType::e4m3:
      return launch_fill<__nv_fp8_e4m3>(data, count, seed, stream);
  }
}

Gemm::Gemm(DType dtype, int n, cudaStream_t stream) : n_(n) {
  const std::int64_t elements = static_cast<std::int64_t>(n) * n;
  const DType result = dtype == DType::e4m3 ? DType::bf16 : dtype;
  a_ = DeviceBuffer(static_cast<std::size_t>(elements * size_bytes(dtype)));
  b_ = DeviceBuffer(static_cast<std::size_t>(elements * size_bytes(dtype)));
  c_ = DeviceBuffer(static_cast<std::size_t>(elements * size_bytes(result)));
  workspace_ = DeviceBuffer(kWorkspaceBytes);
  fill_random(dtype, a_.get(), elements, 1, stream);
  fill_random(dtype, b_.get(), elements, 2, stream);
  cublasLtMatmulPreference_t preference = nullptr;
  try {
    ROOFLASH_CUBLAS(cublasLtCreate(&handle_));
    ROOFLASH_CUBLAS(cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    // A transposed, B not: the one layout that every input type has, and a fast one for all.
    const cublasOperation_t transposed = CUBLAS_OP_T;
    ROOFLASH_CUBLAS(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                   &transposed, sizeof(transposed)));
    if (dtype == DType::e4m3) {
      const std::int8_t fast = 1;
      ROOFLASH_CUBLAS(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM,
                                                     &fast, sizeof(fast)));
    }
    const auto size = static_cast<std::uint64_t>(n);
    ROOFLASH_CUBLAS(cublasLtMatrixLayoutCreate(&input_, cuda_type(dtype), size, size, n));
    ROOFLASH_CUBLAS(cublasLtMatrixLayoutCreate(&output_, cuda_type(result), size, size, n));
    ROOFLASH_CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    const std::size_t limit = workspace_.bytes();
    ROOFLASH_CUBLAS(cublasLtMatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &limit, sizeof(limit)));
    int found = 0;
    ROOFLASH_CUBLAS(cublasLtMatmulAlgoGetHeuristic(handle_, operation_, input_, input_, output_,
                                                   output_, preference, 1, &choice_, &found));
    if (found == 0) check_cublas(CUBLAS_STATUS_NOT_SUPPORTED, "cublasLtMatmulAlgoGetHeuristic");
    (void)cublasLtMatmulPreferenceDestroy(preference);
  } catch (...) {
    if (preference != nullptr) (void)cublasLtMatmulPreferenceDestroy(preference);
    release();
    throw;
  }
}

Gemm::~Gemm() {
  release();
}

void Gemm::release() {
  if (output_ != nullptr) (void)cublasLtMatrixLayoutDestroy(output_);
  if (input_ != nullptr) (void)cublasLtMatrixLayoutDestroy(input_);
  if (operation_ != nullptr) (void)cublasLtMatmulDescDestroy(operation_);
  if (handle_ != nullptr) (void)cublasLtDestroy(handle_);
}

void Gemm::operator()(cudaStream_t stream) const {
  const float one = 1;
  const float zero = 0;
  ROOFLASH_CUBLAS(cublasLtMatmul(handle_, operation_, &one, a_.get(), input_, b_.get(), input_,
                                 &zero, c_.get(), output_, c_.get(), output_, &choice_.algo,
                                 workspace_.get(), workspace_.bytes(), stream));
}

}  // namespace rooflash
