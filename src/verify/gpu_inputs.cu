// Inputs and poisoned outputs on the GPU.
#include <cstdint>

#include "gpu/check.hpp"
#include "verify/generator.hpp"
#include "verify/gpu_elements.cuh"
#include "verify/gpu_quantize.hpp"
#include "verify/gpu_verify.hpp"

namespace rooflash {
namespace {

constexpr int kThreads = 256;
constexpr unsigned kFillBlocks = 2048;

// Element `i` of a [batch, seqlen, heads, dim] tensor.
template <class T>
__global__ void fill_kernel(T* out, std::int64_t elements, std::int64_t seqlen, std::int64_t heads,
                            std::int64_t dim, InputSpec spec) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += step) {
    const std::int64_t col = i % dim;
    const std::int64_t head = i / dim % heads;
    const std::int64_t row = i / dim / heads % seqlen;
    const std::int64_t batch = i / dim / heads / seqlen;
    out[i] = rounded<T>(input_value(spec, batch, head, row, col));
  }
}

}  // namespace

void fill_inputs(const Problem& p, std::uint64_t seed, const Tensors& t, CUstream_st* stream) {
  if (p.dtype == DType::e4m3) {
    const GpuQuantizer quantizer(p, seed, stream);
    quantizer.launch(t, stream);
    ROOFLASH_CUDA(cudaStreamSynchronize(stream));  // the inputs in bf16 go
    return;
  }
  with_element(p.dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto fill = [&](TensorId tensor, const void* out, std::int64_t elements,
                          std::int64_t seqlen, std::int64_t heads, std::int64_t dim) {
      const InputSpec spec{p.distribution, tensor, seed, static_cast<int>(p.headdim)};
      fill_kernel<T><<<kFillBlocks, kThreads, 0, stream>>>(static_cast<T*>(const_cast<void*>(out)),
                                                           elements, seqlen, heads, dim, spec);
      ROOFLASH_CUDA_LAUNCHED();
    };
    fill(TensorId::q, t.q, q_elements(p), p.seqlen_q, p.heads_q, p.headdim);
    fill(TensorId::k, t.k, k_elements(p), p.seqlen_kv, p.heads_kv, p.headdim);
    fill(TensorId::v, t.v, v_elements(p), p.seqlen_kv, p.heads_kv, p.headdim_v);
  });
}

void poison_outputs(const Problem& p, const Tensors& t, CUstream_st* stream) {
  // All bits set is a NaN in every type of O and in fp32.
  const auto bytes = static_cast<std::size_t>(o_elements(p) * size_bytes(output_dtype(p)));
  ROOFLASH_CUDA(cudaMemsetAsync(t.o, 0xFF, bytes, stream));
  ROOFLASH_CUDA(
      cudaMemsetAsync(t.lse, 0xFF, static_cast<std::size_t>(lse_elements(p)) * 4, stream));
}

}  // namespace rooflash
