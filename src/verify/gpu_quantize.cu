// Inputs of e4m3 problems on the GPU: generated, rotated where the problem asks for it, and
// quantised. The same arithmetic as quantize.cpp, in the same order.
#include <algorithm>
#include <cstdint>

#include "gpu/check.hpp"
#include "verify/generator.hpp"
#include "verify/gpu_elements.cuh"
#include "verify/gpu_verify.hpp"
#include "verify/quantize.hpp"

namespace rooflash {
namespace {

constexpr int kThreads = 256;

// A tensor to quantise: [batch, seqlen, heads, width], `block_rows` rows of a head to a scale.
struct Target {
  __nv_fp8_e4m3* out;
  InputSpec spec;
  std::int64_t batch, seqlen, heads, width, block_rows;
  bool rotate;

  __host__ __device__ std::int64_t blocks() const { return (seqlen + block_rows - 1) / block_rows; }
  __host__ __device__ std::int64_t scales() const { return batch * heads * blocks(); }
};

// The block of rows of a CTA.
struct Block {
  std::int64_t batch, head, first_row, end_row;

  __device__ explicit Block(const Target& t) {
    const std::int64_t index = blockIdx.x;
    const std::int64_t block = index % t.blocks();
    head = index / t.blocks() % t.heads;
    batch = index / t.blocks() / t.heads;
    first_row = block * t.block_rows;
    end_row = min(first_row + t.block_rows, t.seqlen);
  }
};

// A row's values before they are quantised, in shared memory; `other` is room for as many. Returns
// where they are. All threads of the CTA take part.
__device__ const float* make_row(const Target& t, const Block& block, std::int64_t row,
                                 float* values, float* other) {
  __syncthreads();  // the row before has been read
  for (std::int64_t c = threadIdx.x; c < t.width; c += kThreads) {
    const float value = input_value(t.spec, block.batch, block.head, row, c);
    values[c] = t.rotate ? value * fp8::sign_of(c) : value;
  }
  __syncthreads();
  if (!t.rotate) return values;
  for (std::int64_t half = 1; half < t.width; half *= 2) {
    for (std::int64_t c = threadIdx.x; c < t.width; c += kThreads) {
      other[c] = fp8::butterfly(values, c, half);
    }
    __syncthreads();
    float* const swapped = values;
    values = other;
    other = swapped;
  }
  const float factor = fp8::hadamard_factor(t.width);
  for (std::int64_t c = threadIdx.x; c < t.width; c += kThreads) values[c] *= factor;
  __syncthreads();
  return values;
}

// Greatest magnitude of each block of rows.
__global__ void __launch_bounds__(kThreads) largest_kernel(Target t, float* largest) {
  extern __shared__ float shared[];
  __shared__ float of_thread[kThreads];
  const Block block(t);
  float most = 0;
  for (std::int64_t row = block.first_row; row < block.end_row; ++row) {
    const float* const values = make_row(t, block, row, shared, shared + t.width);
    for (std::int64_t c = threadIdx.x; c < t.width; c += kThreads) {
      most = fmaxf(most, fabsf(values[c]));
    }
  }
  of_thread[threadIdx.x] = most;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int i = 1; i < kThreads; ++i) most = fmaxf(most, of_thread[i]);
    largest[blockIdx.x] = most;
  }
}

// Gives each run of `share` magnitudes their greatest one.
__global__ void widen_kernel(float* largest, std::int64_t count, std::int64_t share) {
  const std::int64_t first =
      (static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x) * share;
  if (first >= count) return;
  float most = 0;
  for (std::int64_t i = first; i < first + share; ++i) most = fmaxf(most, largest[i]);
  for (std::int64_t i = first; i < first + share; ++i) largest[i] = most;
}

// Magnitudes to scales, in place.
__global__ void scale_kernel(float* largest, std::int64_t count) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < count) largest[i] = fp8::scale_of(largest[i]);
}

// Of V: a scale of each head from `of_heads`, and in place of the magnitudes of its blocks their
// powers of two; 0 where there is one block a scale.
__global__ void value_scale_kernel(float* of_blocks, const float* of_heads, std::int64_t count,
                                   std::int64_t blocks, bool by_block, float* v_scale) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  of_blocks[i] = by_block ? fp8::block_log2(of_blocks[i], of_heads[i]) : 0.0F;
  if (i % blocks == 0) v_scale[i / blocks] = fp8::scale_of(of_heads[i]);
}

// `v_log2` null: one scale a block of rows; else one a head, and a power of two a block.
__global__ void __launch_bounds__(kThreads)
    quantize_kernel(Target t, const float* scales, const float* v_log2) {
  extern __shared__ float shared[];
  const Block block(t);
  const std::int64_t index = blockIdx.x;
  const float scale = v_log2 == nullptr
                          ? scales[index]
                          : ldexpf(scales[index / t.blocks()], static_cast<int>(v_log2[index]));
  for (std::int64_t row = block.first_row; row < block.end_row; ++row) {
    const float* const values = make_row(t, block, row, shared, shared + t.width);
    __nv_fp8_e4m3* const out =
        t.out + ((block.batch * t.seqlen + row) * t.heads + block.head) * t.width;
    for (std::int64_t c = threadIdx.x; c < t.width; c += kThreads) {
      out[c] = rounded<__nv_fp8_e4m3>(values[c] / scale);
    }
  }
}

unsigned blocks_for(std::int64_t count) {
  return static_cast<unsigned>((count + kThreads - 1) / kThreads);
}

class Quantizer {
 public:
  Quantizer(const Problem& problem, CUstream_st* stream)
      : modes_(fp8_modes(problem)), stream_(stream) {}

  // Q or K, with a scale for each block of rows.
  void quantize(const Target& t, float* scales) const {
    find_largest(t, scales);
    widen(t, scales, modes_.scale);
    scale_kernel<<<blocks_for(t.scales()), kThreads, 0, stream_>>>(scales, t.scales());
    ROOFLASH_CUDA_LAUNCHED();
    quantize_kernel<<<grid(t), kThreads, smem_bytes(t), stream_>>>(t, scales, nullptr);
    ROOFLASH_CUDA_LAUNCHED();
  }

  void quantize_values(const Target& t, float* v_scale, float* v_log2) const {
    find_largest(t, v_log2);
    const DeviceBuffer of_heads(static_cast<std::size_t>(t.scales()) * 4);
    ROOFLASH_CUDA(cudaMemcpyAsync(of_heads.get(), v_log2, of_heads.bytes(),
                                  cudaMemcpyDeviceToDevice, stream_));
    widen(t, of_heads.get<float>(),
          modes_.scale == ScaleSpan::tensor ? ScaleSpan::tensor : ScaleSpan::head);
    value_scale_kernel<<<blocks_for(t.scales()), kThreads, 0, stream_>>>(
        v_log2, of_heads.get<float>(), t.scales(), t.blocks(), modes_.scale == ScaleSpan::block,
        v_scale);
    ROOFLASH_CUDA_LAUNCHED();
    quantize_kernel<<<grid(t), kThreads, smem_bytes(t), stream_>>>(t, v_scale, v_log2);
    ROOFLASH_CUDA_LAUNCHED();
    ROOFLASH_CUDA(cudaStreamSynchronize(stream_));  // of_heads goes
  }

 private:
  static unsigned grid(const Target& t) { return static_cast<unsigned>(t.scales()); }
  static std::size_t smem_bytes(const Target& t) { return static_cast<std::size_t>(t.width) * 8; }

  void find_largest(const Target& t, float* largest) const {
    largest_kernel<<<grid(t), kThreads, smem_bytes(t), stream_>>>(t, largest);
    ROOFLASH_CUDA_LAUNCHED();
  }
  void widen(const Target& t, float* largest, ScaleSpan span) const {
    if (span == ScaleSpan::block) return;
    const std::int64_t share = span == ScaleSpan::head ? t.blocks() : t.scales();
    widen_kernel<<<blocks_for(t.scales() / share), kThreads, 0, stream_>>>(largest, t.scales(),
                                                                           share);
    ROOFLASH_CUDA_LAUNCHED();
  }

  Fp8Modes modes_;
  CUstream_st* stream_;
};

}  // namespace

void fill_quantized(const Problem& p, std::uint64_t seed, const Tensors& t, CUstream_st* stream) {
  const bool rotate = fp8_modes(p).hadamard;
  const auto target = [&](TensorId tensor, const void* out, std::int64_t seqlen, std::int64_t heads,
                          std::int64_t width, std::int64_t block_rows) {
    return Target{static_cast<__nv_fp8_e4m3*>(const_cast<void*>(out)),
                  {p.distribution, tensor, seed, static_cast<int>(p.headdim)},
                  p.batch,
                  seqlen,
                  heads,
                  width,
                  block_rows,
                  rotate && tensor != TensorId::v};
  };
  const Quantizer quantizer(p, stream);
  quantizer.quantize(target(TensorId::q, t.q, p.seqlen_q, p.heads_q, p.headdim, kScaleRowsQ),
                     const_cast<float*>(t.scales.q));
  quantizer.quantize(target(TensorId::k, t.k, p.seqlen_kv, p.heads_kv, p.headdim, kScaleRowsKv),
                     const_cast<float*>(t.scales.k));
  quantizer.quantize_values(
      target(TensorId::v, t.v, p.seqlen_kv, p.heads_kv, p.headdim_v, kScaleRowsKv),
      const_cast<float*>(t.scales.v), const_cast<float*>(t.scales.v_log2));
}

}  // namespace rooflash
