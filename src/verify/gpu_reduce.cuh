// Reductions over a block of the reference's kernels.
#pragma once

namespace rooflash {

inline constexpr int kReferenceThreads = 256;

// `combine` of all threads' values, in all threads. `shared` has a place for each.
template <class Value, class Combine>
__device__ Value block_reduce(Value value, Value* shared, Combine combine) {
  __syncthreads();
  shared[threadIdx.x] = value;
  __syncthreads();
  for (int half = kReferenceThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) {
      shared[threadIdx.x] = combine(shared[threadIdx.x], shared[threadIdx.x + half]);
    }
    __syncthreads();
  }
  return shared[0];
}

}  // namespace rooflash
