// A CTA a block of rows that share a scale, a warp a row. A row's lanes hold as many neighbouring
// columns each. Inputs are read from HBM once where a block needs to know its own values alone,
// else twice.
#include "verify/gpu_quantize.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "verify/gpu_elements.cuh"
#include "verify/gpu_verify.hpp"
#include "verify/quantize.hpp"

namespace rooflash {
namespace {

constexpr int kThreads = 256;
constexpr int kWarps = kThreads / 32;
constexpr std::int64_t kMostColumns = 512;
constexpr unsigned kAllLanes = 0xFFFFFFFFU;

// A tensor to quantise: [batch, seqlen, heads, width], `block_rows` rows of a head to a scale.
struct Target {
  const __nv_bfloat16* real;
  __nv_fp8_e4m3* out;
  unsigned long long* saturated;
  std::int64_t batch, seqlen, heads, width, block_rows;
  bool rotate;

  __host__ __device__ std::int64_t blocks() const { return (seqlen + block_rows - 1) / block_rows; }
  __host__ __device__ std::int64_t scales() const { return batch * heads * blocks(); }
};

// What a thread has of the block of rows of its CTA: kColumns columns of every kWarps-th row.
template <int kColumns>
class Block {
 public:
  __device__ explicit Block(const Target& target) : t_(target), first_column_(lane() * kColumns) {
    const std::int64_t block = blockIdx.x % t_.blocks();
    const std::int64_t head = blockIdx.x / t_.blocks() % t_.heads;
    const std::int64_t batch = blockIdx.x / t_.blocks() / t_.heads;
    const std::int64_t first_row = block * t_.block_rows;
    rows_ = min(t_.block_rows, t_.seqlen - first_row);
    first_ = ((batch * t_.seqlen + first_row) * t_.heads + head) * t_.width;
    for (int i = 0; t_.rotate && i < kColumns; ++i) signs_[i] = fp8::sign_of(first_column_ + i);
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
      if (t_.rotate) rotate(values);
      visit(first, values);
    }
  }

  __device__ void rotate(float (&values)[kColumns]) const {
    for (int i = 0; i < kColumns; ++i) values[i] *= signs_[i];
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

  const Target& t_;
  std::int64_t first_column_;
  std::int64_t first_;  // element of the block
  std::int64_t rows_;
  float signs_[kColumns];
};

template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    largest_kernel(const __grid_constant__ Target t, float* largest) {
  const float most = Block<kColumns>(t).largest();
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

// With a scale for each block, in one go.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    quantize_blocks_kernel(const __grid_constant__ Target t, float* scales) {
  const Block<kColumns> block(t);
  const float scale = fp8::scale_of(block.largest());
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
  block.quantize(scale);
}

// `v_log2` null: one scale a block of rows; else one a head, and a power of two a block.
template <int kColumns>
__global__ void __launch_bounds__(kThreads)
    quantize_kernel(const __grid_constant__ Target t, const float* scales, const float* v_log2) {
  const std::int64_t index = blockIdx.x;
  const float scale = v_log2 == nullptr
                          ? scales[index]
                          : ldexpf(scales[index / t.blocks()], static_cast<int>(v_log2[index]));
  Block<kColumns>(t).quantize(scale);
}

// Greatest of the `share` magnitudes of a CTA, the same in all threads.
__device__ float largest_of_share(const float* largest, std::int64_t share) {
  __shared__ float of_threads[kThreads];
  float most = 0;
  for (std::int64_t i = threadIdx.x; i < share; i += kThreads) most = fmaxf(most, largest[i]);
  of_threads[threadIdx.x] = most;
  __syncthreads();
  for (int i = 0; i < kThreads; ++i) most = fmaxf(most, of_threads[i]);
  return most;
}

// Magnitudes of blocks, in place, to the scale of the `share` that have one in common, a CTA each.
__global__ void __launch_bounds__(kThreads) share_scales_kernel(float* scales, std::int64_t share) {
  float* const own = scales + blockIdx.x * share;
  const float scale = fp8::scale_of(largest_of_share(own, share));
  for (std::int64_t i = threadIdx.x; i < share; i += kThreads) own[i] = scale;
}

// The same of V, whose heads have scales: in place of the magnitudes of blocks their powers of two,
// 0 where there is no scale a block.
__global__ void __launch_bounds__(kThreads)
    share_value_scales_kernel(float* v_log2, float* v_scale, std::int64_t share,
                              std::int64_t blocks, bool by_block) {
  float* const own = v_log2 + blockIdx.x * share;
  const float most = largest_of_share(own, share);
  for (std::int64_t i = threadIdx.x; i < share; i += kThreads) {
    own[i] = by_block ? fp8::block_log2(own[i], most) : 0.0F;
    if (i % blocks == 0) v_scale[(blockIdx.x * share + i) / blocks] = fp8::scale_of(most);
  }
}

// Calls `visit` with an integral constant: columns that a lane has of rows of `width`.
template <class Visit>
void with_columns(std::int64_t width, const Visit& visit) {
  if (width <= 64) return visit(std::integral_constant<int, 2>());
  if (width <= 128) return visit(std::integral_constant<int, 4>());
  if (width <= 256) return visit(std::integral_constant<int, 8>());
  return visit(std::integral_constant<int, 16>());
}

unsigned grid(std::int64_t ctas) {
  return static_cast<unsigned>(ctas);
}

// Blocks that have a scale in common.
std::int64_t share_of(const Target& t, ScaleSpan span) {
  return span == ScaleSpan::tensor ? t.scales() : t.blocks();
}

// Q or K, with a scale for each block of rows.
void quantize_rows(const Target& t, ScaleSpan span, float* scales, CUstream_st* stream) {
  with_columns(t.width, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    if (span == ScaleSpan::block) {
      quantize_blocks_kernel<kColumns><<<grid(t.scales()), kThreads, 0, stream>>>(t, scales);
      ROOFLASH_CUDA_LAUNCHED();
      return;
    }
    const std::int64_t share = share_of(t, span);
    largest_kernel<kColumns><<<grid(t.scales()), kThreads, 0, stream>>>(t, scales);
    ROOFLASH_CUDA_LAUNCHED();
    share_scales_kernel<<<grid(t.scales() / share), kThreads, 0, stream>>>(scales, share);
    ROOFLASH_CUDA_LAUNCHED();
    quantize_kernel<kColumns><<<grid(t.scales()), kThreads, 0, stream>>>(t, scales, nullptr);
    ROOFLASH_CUDA_LAUNCHED();
  });
}

void quantize_values(const Target& t, ScaleSpan span, float* v_scale, float* v_log2,
                     CUstream_st* stream) {
  with_columns(t.width, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    const std::int64_t share = share_of(t, span);
    largest_kernel<kColumns><<<grid(t.scales()), kThreads, 0, stream>>>(t, v_log2);
    ROOFLASH_CUDA_LAUNCHED();
    share_value_scales_kernel<<<grid(t.scales() / share), kThreads, 0, stream>>>(
        v_log2, v_scale, share, t.blocks(), span == ScaleSpan::block);
    ROOFLASH_CUDA_LAUNCHED();
    quantize_kernel<kColumns><<<grid(t.scales()), kThreads, 0, stream>>>(t, v_scale, v_log2);
    ROOFLASH_CUDA_LAUNCHED();
  });
}

DeviceBuffer bf16_buffer(std::int64_t elements) {
  return DeviceBuffer(static_cast<std::size_t>(elements * size_bytes(DType::bf16)));
}

}  // namespace

GpuQuantizer::GpuQuantizer(const Problem& problem, std::uint64_t seed, CUstream_st* stream)
    : problem_(problem),
      q_(bf16_buffer(q_elements(problem))),
      k_(bf16_buffer(k_elements(problem))),
      v_(bf16_buffer(v_elements(problem))),
      saturated_(sizeof(unsigned long long)) {
  if (std::max(problem.headdim, problem.headdim_v) > kMostColumns) {
    throw UnsupportedError("inputs are quantised on the GPU up to head dim " +
                           std::to_string(kMostColumns));
  }
  Problem real = problem;
  real.dtype = DType::bf16;
  fill_inputs(real, seed, {.q = q_.get(), .k = k_.get(), .v = v_.get()}, stream);
  ROOFLASH_CUDA(cudaMemsetAsync(saturated_.get(), 0, saturated_.bytes(), stream));
}

std::int64_t GpuQuantizer::memory_bytes(const Problem& p) {
  return (q_elements(p) + k_elements(p) + v_elements(p)) * size_bytes(DType::bf16) +
         static_cast<std::int64_t>(sizeof(unsigned long long));
}

void GpuQuantizer::launch(const Tensors& t, CUstream_st* stream) const {
  const Problem& p = problem_;
  const Fp8Modes modes = fp8_modes(p);
  const auto target = [&](const DeviceBuffer& real, const void* out, std::int64_t seqlen,
                          std::int64_t heads, std::int64_t width, std::int64_t block_rows,
                          bool rotate) {
    return Target{real.get<__nv_bfloat16>(),
                  static_cast<__nv_fp8_e4m3*>(const_cast<void*>(out)),
                  saturated_.get<unsigned long long>(),
                  p.batch,
                  seqlen,
                  heads,
                  width,
                  block_rows,
                  rotate};
  };
  quantize_rows(target(q_, t.q, p.seqlen_q, p.heads_q, p.headdim, kScaleRowsQ, modes.hadamard),
                modes.scale, const_cast<float*>(t.scales.q), stream);
  quantize_rows(target(k_, t.k, p.seqlen_kv, p.heads_kv, p.headdim, kScaleRowsKv, modes.hadamard),
                modes.scale, const_cast<float*>(t.scales.k), stream);
  quantize_values(target(v_, t.v, p.seqlen_kv, p.heads_kv, p.headdim_v, kScaleRowsKv, false),
                  modes.scale, const_cast<float*>(t.scales.v), const_cast<float*>(t.scales.v_log2),
                  stream);
}

std::int64_t GpuQuantizer::saturated_elements(CUstream_st* stream) const {
  unsigned long long count = 0;
  ROOFLASH_CUDA(
      cudaMemcpyAsync(&count, saturated_.get(), sizeof(count), cudaMemcpyDeviceToHost, stream));
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  return static_cast<std::int64_t>(count);
}

}  // namespace rooflash
