// The element types of a problem, for the kernels of this folder.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include "core/dtype.hpp"

namespace rooflash {

template <class T>
__device__ T rounded(float value) {
  return T(value);
}

template <class T>
__device__ float as_float(T value) {
  return static_cast<float>(value);
}

// Calls `visit` with a zero of the type that stands for `dtype`.
template <class Visit>
void with_element(DType dtype, const Visit& visit) {
  switch (dtype) {
    case DType::fp32:
      visit(float{});
      break;
    case DType::fp16:
      visit(__half{});
      break;
    case DType::bf16:
      visit(__nv_bfloat16{});
      break;
    case DType::e4m3:
      visit(__nv_fp8_e4m3{});
      break;
  }
}

}  // namespace rooflash
