// With `split`: the kernel that follows the forward one, and combines the parts of each row.
#pragma once

#include <cmath>

#include "common/element.cuh"
#include "common/hopper/arguments.cuh"

namespace rooflash::hopper {

// Of what the 32 lanes of a warp have; the same in all of them.
template <class Operation>
__device__ __forceinline__ float across_warp(float value, const Operation& operation) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    value = operation(value, __shfl_xor_sync(0xFFFFFFFFU, value, distance));
  }
  return value;
}

// A CTA takes a row at a time. Each warp adds up every kCombineWarps-th part, each lane 4 of every
// 128 columns; sums are made in a fixed order.
template <class T>
__device__ __forceinline__ void combine(const Arguments& args) {
  constexpr int kRounds = kMostSplits / 32;
  constexpr int kPartsAtOnce = 32 / kCombineWarps;  // of a warp
  __shared__ float4 sums[kCombineWarps - 1][32];
  const ForwardArguments& p = args.problem;
  const Parts& parts = args.parts;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t row = blockIdx.x; row < parts.rows; row += gridDim.x) {
    // Weights of the parts: e^LSE over the sum of all.
    float weights[kRounds];
    float largest = -INFINITY;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      const int part = 32 * round + lane;
      weights[round] = part < parts.count ? parts.lse[part * parts.rows + row] : -INFINITY;
      largest = fmaxf(largest, weights[round]);
    }
    largest = across_warp(largest, [](float a, float b) { return fmaxf(a, b); });
    // A row with no key in any part: 0 avoids inf - inf.
    const float shift = largest == -INFINITY ? 0.0F : largest;
    float sum = 0;
#pragma unroll
    for (int round = 0; round < kRounds; ++round) {
      weights[round] = __expf(weights[round] - shift);
      sum += weights[round];
    }
    sum = across_warp(sum, [](float a, float b) { return a + b; });
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;

    const std::int64_t head = row / p.seqlen_q;
    const std::int64_t batch = head / p.heads_q;
    const std::int64_t query = row - head * p.seqlen_q;
    if (threadIdx.x == 0) p.tensors.lse[row] = largest + logf(sum);
    T* const o =
        static_cast<T*>(p.tensors.o) +
        ((batch * p.seqlen_q + query) * p.heads_q + head - batch * p.heads_q) * p.headdim_v;
    for (int column = 4 * lane; column - 4 * lane < p.headdim_v; column += 128) {
      const bool exists = column < p.headdim_v;
      float4 own = {0, 0, 0, 0};
#pragma unroll
      for (int round = 0; round < kRounds; ++round) {
        if (32 * round >= parts.count) break;
        float4 values[kPartsAtOnce];  // all on their way at once
#pragma unroll
        for (int i = 0; i < kPartsAtOnce; ++i) {
          const int part = 32 * round + kCombineWarps * i + warp;
          values[i] = {0, 0, 0, 0};
          if (exists && part < parts.count) {
            values[i] = *reinterpret_cast<const float4*>(
                parts.o + (part * parts.rows + row) * p.headdim_v + column);
          }
        }
#pragma unroll
        for (int i = 0; i < kPartsAtOnce; ++i) {
          const float weight =
              __shfl_sync(0xFFFFFFFFU, weights[round], kCombineWarps * i + warp) * inverse;
          own.x += weight * values[i].x;
          own.y += weight * values[i].y;
          own.z += weight * values[i].z;
          own.w += weight * values[i].w;
        }
      }
      if (warp > 0) sums[warp - 1][lane] = own;
      __syncthreads();
      if (warp == 0 && exists) {
#pragma unroll
        for (const auto& others : sums) {
          own.x += others[lane].x;
          own.y += others[lane].y;
          own.z += others[lane].z;
          own.w += others[lane].w;
        }
        *reinterpret_cast<uint2*>(o + column) = {pack<T>(own.x, own.y), pack<T>(own.z, own.w)};
      }
      __syncthreads();
    }
  }
}

}  // namespace rooflash::hopper
