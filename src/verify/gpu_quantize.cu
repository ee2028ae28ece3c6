// A CTA a block of rows that share a scale. Inputs are read from HBM once where a block needs to
// know its own values alone, else twice; V, where it is smoothed, once more.
#include "verify/gpu_quantize.hpp"

#include <algorithm>
#include <cstdint>
#include <string>

#include "core/error.hpp"
#include "verify/gpu_quantize_block.cuh"
#include "verify/gpu_verify.hpp"

namespace rooflash {
namespace {

constexpr std::int64_t kMostColumns = 512;

template <int kColumns>
__global__ void __launch_bounds__(kQuantizeThreads)
    largest_kernel(const __grid_constant__ QuantizeTarget t, float* largest) {
  const float most = QuantizeBlock<kColumns>(t).largest();
  if (threadIdx.x == 0) largest[blockIdx.x] = most;
}

// With a scale for each block, in one go.
template <int kColumns>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_blocks_kernel(const __grid_constant__ QuantizeTarget t, float* scales) {
  const QuantizeBlock<kColumns> block(t);
  const float scale = fp8::scale_of(block.largest());
  if (threadIdx.x == 0) scales[blockIdx.x] = scale;
  block.quantize(scale);
}

// `v_log2` null: one scale a block of rows; else one a head, and a power of two a block.
template <int kColumns>
__global__ void __launch_bounds__(kQuantizeThreads)
    quantize_kernel(const __grid_constant__ QuantizeTarget t, const float* scales,
                    const float* v_log2) {
  const std::int64_t index = blockIdx.x;
  const float scale = v_log2 == nullptr
                          ? scales[index]
                          : ldexpf(scales[index / t.blocks()], static_cast<int>(v_log2[index]));
  QuantizeBlock<kColumns>(t).quantize(scale);
}

// Greatest of the `share` magnitudes of a CTA, the same in all threads.
__device__ float largest_of_share(const float* largest, std::int64_t share) {
  __shared__ float of_threads[kQuantizeThreads];
  float most = 0;
  for (std::int64_t i = threadIdx.x; i < share; i += kQuantizeThreads) {
    most = fmaxf(most, largest[i]);
  }
  of_threads[threadIdx.x] = most;
  __syncthreads();
  for (int i = 0; i < kQuantizeThreads; ++i) most = fmaxf(most, of_threads[i]);
  return most;
}

// Magnitudes of blocks, in place, to the scale of the `share` that have one in common, a CTA each.
__global__ void __launch_bounds__(kQuantizeThreads)
    share_scales_kernel(float* scales, std::int64_t share) {
  float* const own = scales + blockIdx.x * share;
  const float scale = fp8::scale_of(largest_of_share(own, share));
  for (std::int64_t i = threadIdx.x; i < share; i += kQuantizeThreads) own[i] = scale;
}

// The same of V, whose heads have scales: in place of the magnitudes of blocks their powers of two,
// 0 where there is no scale a block.
__global__ void __launch_bounds__(kQuantizeThreads)
    share_value_scales_kernel(float* v_log2, float* v_scale, std::int64_t share,
                              std::int64_t blocks, bool by_block) {
  float* const own = v_log2 + blockIdx.x * share;
  const float most = largest_of_share(own, share);
  for (std::int64_t i = threadIdx.x; i < share; i += kQuantizeThreads) {
    own[i] = by_block ? fp8::block_log2(own[i], most) : 0.0F;
    if (i % blocks == 0) v_scale[(blockIdx.x * share + i) / blocks] = fp8::scale_of(most);
  }
}

// Of each channel, the sum over the rows of a CTA's block: [scales, width].
__global__ void __launch_bounds__(kQuantizeThreads)
    sum_blocks_kernel(const __grid_constant__ QuantizeTarget t, float* sums) {
  const std::int64_t block = blockIdx.x % t.blocks();
  const std::int64_t head = blockIdx.x / t.blocks() % t.heads;
  const std::int64_t batch = blockIdx.x / t.blocks() / t.heads;
  const std::int64_t first_row = block * t.block_rows;
  const std::int64_t rows = min(t.block_rows, t.seqlen - first_row);
  const __nv_bfloat16* const first =
      t.real + ((batch * t.seqlen + first_row) * t.heads + head) * t.width;
  for (std::int64_t c = threadIdx.x; c < t.width; c += blockDim.x) {
    float sum = 0;
#pragma unroll 8
    for (std::int64_t row = 0; row < rows; ++row) {
      sum += as_float(first[row * t.heads * t.width + c]);
    }
    sums[blockIdx.x * t.width + c] = sum;
  }
}

// A CTA a head.
__global__ void __launch_bounds__(kQuantizeThreads)
    mean_kernel(const __grid_constant__ QuantizeTarget t, const float* sums, float* mean) {
  for (std::int64_t c = threadIdx.x; c < t.width; c += blockDim.x) {
    float sum = 0;
#pragma unroll 8
    for (std::int64_t block = 0; block < t.blocks(); ++block) {
      sum += sums[(blockIdx.x * t.blocks() + block) * t.width + c];
    }
    mean[blockIdx.x * t.width + c] = sum / static_cast<float>(t.seqlen);
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
std::int64_t share_of(const QuantizeTarget& t, ScaleSpan span) {
  return span == ScaleSpan::tensor ? t.scales() : t.blocks();
}

// Q or K, with a scale for each block of rows.
void quantize_rows(const QuantizeTarget& t, ScaleSpan span, float* scales, CUstream_st* stream) {
  with_columns(t.width, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    if (span == ScaleSpan::block) {
      quantize_blocks_kernel<kColumns>
          <<<grid(t.scales()), kQuantizeThreads, 0, stream>>>(t, scales);
      ROOFLASH_CUDA_LAUNCHED();
      return;
    }
    const std::int64_t share = share_of(t, span);
    largest_kernel<kColumns><<<grid(t.scales()), kQuantizeThreads, 0, stream>>>(t, scales);
    ROOFLASH_CUDA_LAUNCHED();
    share_scales_kernel<<<grid(t.scales() / share), kQuantizeThreads, 0, stream>>>(scales, share);
    ROOFLASH_CUDA_LAUNCHED();
    quantize_kernel<kColumns>
        <<<grid(t.scales()), kQuantizeThreads, 0, stream>>>(t, scales, nullptr);
    ROOFLASH_CUDA_LAUNCHED();
  });
}

void quantize_values(const QuantizeTarget& t, ScaleSpan span, float* v_scale, float* v_log2,
                     CUstream_st* stream) {
  with_columns(t.width, [&](auto columns) {
    constexpr int kColumns = decltype(columns)::value;
    const std::int64_t share = share_of(t, span);
    largest_kernel<kColumns><<<grid(t.scales()), kQuantizeThreads, 0, stream>>>(t, v_log2);
    ROOFLASH_CUDA_LAUNCHED();
    share_value_scales_kernel<<<grid(t.scales() / share), kQuantizeThreads, 0, stream>>>(
        v_log2, v_scale, share, t.blocks(), span == ScaleSpan::block);
    ROOFLASH_CUDA_LAUNCHED();
    quantize_kernel<kColumns>
        <<<grid(t.scales()), kQuantizeThreads, 0, stream>>>(t, v_scale, v_log2);
    ROOFLASH_CUDA_LAUNCHED();
  });
}

// Sums that V's mean takes on its way, in fp32.
std::int64_t sum_elements(const Problem& p) {
  return v_mean_elements(p) * kv_scale_blocks(p);
}

void take_mean(const QuantizeTarget& t, const DeviceBuffer& sums, float* mean,
               CUstream_st* stream) {
  // A thread a channel.
  const auto threads =
      static_cast<unsigned>(std::min<std::int64_t>((t.width + 31) / 32 * 32, kQuantizeThreads));
  sum_blocks_kernel<<<grid(t.scales()), threads, 0, stream>>>(t, sums.get<float>());
  ROOFLASH_CUDA_LAUNCHED();
  mean_kernel<<<grid(t.batch * t.heads), threads, 0, stream>>>(t, sums.get<float>(), mean);
  ROOFLASH_CUDA_LAUNCHED();
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
      sums_(static_cast<std::size_t>(sum_elements(problem)) * sizeof(float)),
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
         sum_elements(p) * static_cast<std::int64_t>(sizeof(float)) +
         static_cast<std::int64_t>(sizeof(unsigned long long));
}

void GpuQuantizer::launch(const Tensors& t, CUstream_st* stream) const {
  const Problem& p = problem_;
  const Fp8Modes modes = fp8_modes(p);
  const auto target = [&](const DeviceBuffer& real, const void* out, std::int64_t seqlen,
                          std::int64_t heads, std::int64_t width, std::int64_t block_rows,
                          bool rotate) {
    return QuantizeTarget{real.get<__nv_bfloat16>(),
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
  QuantizeTarget values =
      target(v_, t.v, p.seqlen_kv, p.heads_kv, p.headdim_v, kScaleRowsKv, false);
  if (modes.smooth_values) {
    take_mean(values, sums_, const_cast<float*>(t.scales.v_mean), stream);
    values.mean = t.scales.v_mean;
  }
  quantize_values(values, modes.scale, const_cast<float*>(t.scales.v),
                  const_cast<float*>(t.scales.v_log2), stream);
}

std::int64_t GpuQuantizer::saturated_elements(CUstream_st* stream) const {
  unsigned long long count = 0;
  ROOFLASH_CUDA(
      cudaMemcpyAsync(&count, saturated_.get(), sizeof(count), cudaMemcpyDeviceToHost, stream));
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  return static_cast<std::int64_t>(count);
}

}  // namespace rooflash
