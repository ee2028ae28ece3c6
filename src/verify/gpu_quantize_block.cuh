// A block of rows that share a scale, as the CTA that quantises it sees it: a warp a row, whose
// lanes hold as many neighbouring columns each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "verify/gpu_elements.cuh"
#include "verify/quantize.hpp"

namespace rooflash {

constexpr int kQuantizeThreads = 256;

// A tensor to quantise: [batch, seqlen, heads, width], `block_rows` rows of a head to a scale.
struct QuantizeTarget {
  const __nv_bfloat16* real;
  __nv_fp8_e4m3* out;
  unsigned long long* saturated;
  std::int64_t batch, seqlen, heads, width, block_rows;
  bool rotate;
  const float* mean = nullptr;  // [batch, heads, width], to be taken out where nothing is rotated

  __host__ __device__ std::int64_t blocks() const { return (seqlen + block_rows - 1) / block_rows; }
  __host__ __device__ std::int64_t scales() const { return batch * heads * blocks(); }
};

// What a thread has of the block of rows of its CTA: kColumns columns of every kWarps-th row.
template <int kColumns>
class QuantizeBlock {
 public:
  __device__ explicit QuantizeBlock(const QuantizeTarget& target)
      : t_(target), first_column_(lane() * kColumns) {
    const std::int64_t block = blockIdx.x % t_.blocks();
    const std::int64_t head = blockIdx.x / t_.blocks() % t_.heads;
    const std::int64_t batch = blockIdx.x / t_.blocks() / t_.heads;
    const std::int64_t first_row = block * t_.block_rows;
    rows_ = min(t_.block_rows, t_.seqlen - first_row);
    first_ = ((batch * t_.seqlen + first_row) * t_.heads + head) * t_.width;
    const float* const mean =
        t_.mean == nullptr ? nullptr : t_.mean + (batch * t_.heads + head) * t_.width;
    for (int i = 0; i < kColumns; ++i) {
      const std::int64_t column = first_column_ + i;
      if (t_.rotate) {
        of_columns_[i] = fp8::sign_of(column);
      } else {
        of_columns_[i] = mean != nullptr && column < t_.width ? mean[column] : 0.0F;
      }
    }
  }

  // Greatest magnitude, the same in all threads.
  __device__ float largest() const {
    __shared__ float of_warps[kWarps];
    float most = 0;
    for_rows([&](std::int64_t, const float(&values)[kColumns]) {
      for (int i = 0; i < kColumns; ++i) most = fmaxf(most, fabsf(values[i]));
    });
    for (int lanes = 16; lanes > 0; lanes /= 2) {
      most = fmaxf(most, __shfl_xor_sync(kAllLanes, most, lanes));
    }
    if (lane() == 0) of_warps[warp()] = most;
    __syncthreads();
    for (int i = 0; i < kWarps; ++i) most = fmaxf(most, of_warps[i]);
    return most;
  }

  __device__ void quantize(float scale) const {
    // Above this, rounding would go to the next number, which e4m3 does not have.
    constexpr float kRoundsToLargest = 464;
    int saturated = 0;
    for_rows([&](std::int64_t first, const float(&values)[kColumns]) {
      Packed packed;
      for (int i = 0; i < kColumns; ++i) {
        const float value = values[i] / scale;
        if (fabsf(value) > kRoundsToLargest) ++saturated;
        packed.at[i] = rounded<__nv_fp8_e4m3>(value).__x;
      }
      auto* const out = reinterpret_cast<unsigned char*>(t_.out + first);
      if (is_full()) {
        *reinterpret_cast<Packed*>(out) = packed;
      } else {
        for (int i = 0; i < kColumns && first_column_ + i < t_.width; ++i) out[i] = packed.at[i];
      }
    });
    if (saturated > 0) atomicAdd(t_.saturated, static_cast<unsigned long long>(saturated));
  }

 private:
  static constexpr int kWarps = kQuantizeThreads / 32;
  static constexpr unsigned kAllLanes = 0xFFFFFFFFU;

  struct alignas(kColumns) Packed {
    unsigned char at[kColumns];
  };
  struct alignas(std::min(2 * kColumns, 16)) Loaded {
    __nv_bfloat16_raw at[kColumns];
  };

  static __device__ int lane() { return static_cast<int>(threadIdx.x) % 32; }
  static __device__ int warp() { return static_cast<int>(threadIdx.x) / 32; }
  __device__ bool is_full() const { return t_.width == 32 * kColumns; }

  // Calls `visit` with the place of the thread's first element of each row, and its values.
  template <class Visit>
  __device__ void for_rows(Visit visit) const {
#pragma unroll 4  // so that several rows are on their way
    for (std::int64_t row = warp(); row < rows_; row += kWarps) {
      const std::int64_t first = first_ + row * t_.heads * t_.width + first_column_;
      Loaded loaded{};
      if (is_full()) {
        loaded = *reinterpret_cast<const Loaded*>(t_.real + first);
      } else {
        for (int i = 0; i < kColumns && first_column_ + i < t_.width; ++i) {
          loaded.at[i] = t_.real[first + i];
        }
      }
      float values[kColumns];
      for (int i = 0; i < kColumns; ++i) values[i] = as_float(__nv_bfloat16(loaded.at[i]));
      if (t_.rotate) {
        rotate(values);
      } else {
        for (int i = 0; i < kColumns; ++i) values[i] -= of_columns_[i];
      }
      visit(first, values);
    }
  }

  __device__ void rotate(float (&values)[kColumns]) const {
    for (int i = 0; i < kColumns; ++i) values[i] *= of_columns_[i];
      // Pairs inside a thread, then pairs of lanes.
#pragma unroll
    for (int half = 1; half < kColumns; half *= 2) {
      float before[kColumns];
      for (int i = 0; i < kColumns; ++i) before[i] = values[i];
      for (int i = 0; half < t_.width && i < kColumns; ++i) {
        values[i] = fp8::butterfly(before[i], before[i ^ half], (i & half) != 0);
      }
    }
    for (int lanes = 1; lanes * kColumns < t_.width; lanes *= 2) {
      for (int i = 0; i < kColumns; ++i) {
        const float other = __shfl_xor_sync(kAllLanes, values[i], lanes);
        values[i] = fp8::butterfly(values[i], other, (lane() & lanes) != 0);
      }
    }
    const float factor = fp8::hadamard_factor(t_.width);
    for (int i = 0; i < kColumns; ++i) values[i] *= factor;
  }

  const QuantizeTarget& t_;
  std::int64_t first_column_;
  std::int64_t first_;  // element of the block
  std::int64_t rows_;
  float of_columns_[kColumns];  // signs to rotate with, else means to take out
};

}  // namespace rooflash
