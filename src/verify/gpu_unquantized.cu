// One block a row; scores in a buffer, as in gpu_verify.cu.
#include "verify/gpu_unquantized.hpp"

#include <cmath>

#include "verify/generator.hpp"
#include "verify/gpu_elements.cuh"
#include "verify/gpu_reduce.cuh"

namespace rooflash {
namespace {

struct Arguments {
  InputSpec q, k, v;
  const CheckedRow* rows;
  double* scores;  // [rows, seqlen_kv]
  double* o;       // [rows, headdim_v]
  std::int64_t group, seqlen_kv, headdim, headdim_v;
  double scale;
};

// As it is before it is quantised.
__device__ double real_value(const InputSpec& spec, std::int64_t batch, std::int64_t head,
                             std::int64_t row, std::int64_t col) {
  return as_float(rounded<__nv_bfloat16>(input_value(spec, batch, head, row, col)));
}

__global__ void __launch_bounds__(kReferenceThreads) unquantized_kernel(Arguments a) {
  __shared__ double shared[kReferenceThreads];
  const std::int64_t index = blockIdx.x;
  const CheckedRow row = a.rows[index];
  const std::int64_t head_kv = row.head / a.group;
  double* const scores = a.scores + index * a.seqlen_kv;
  double largest = -INFINITY;
  for (std::int64_t j = row.begin + threadIdx.x; j < row.end; j += kReferenceThreads) {
    double dot = 0;
    for (std::int64_t c = 0; c < a.headdim; ++c) {
      dot += real_value(a.q, row.batch, row.head, row.row, c) *
             real_value(a.k, row.batch, head_kv, j, c);
    }
    scores[j] = dot * a.scale;
    largest = fmax(largest, scores[j]);
  }
  largest = block_reduce(largest, shared, [](double x, double y) { return fmax(x, y); });
  double sum = 0;
  for (std::int64_t j = row.begin + threadIdx.x; j < row.end; j += kReferenceThreads) {
    scores[j] = exp(scores[j] - largest);
    sum += scores[j];
  }
  sum = block_reduce(sum, shared, [](double x, double y) { return x + y; });
  for (std::int64_t c = threadIdx.x; c < a.headdim_v; c += kReferenceThreads) {
    double o = 0;
    for (std::int64_t j = row.begin; j < row.end; ++j) {
      o += scores[j] * real_value(a.v, row.batch, head_kv, j, c);
    }
    a.o[index * a.headdim_v + c] = row.begin < row.end ? o / sum : 0.0;
  }
}

}  // namespace

std::vector<double> unquantized_outputs(const Problem& p, std::uint64_t seed,
                                        const std::vector<CheckedRow>& rows, CUstream_st* stream) {
  const std::size_t n = rows.size();
  const DeviceBuffer device_rows(n * sizeof(CheckedRow));
  const DeviceBuffer scores(n * static_cast<std::size_t>(p.seqlen_kv) * 8);
  const DeviceBuffer o(n * static_cast<std::size_t>(p.headdim_v) * 8);
  ROOFLASH_CUDA(cudaMemcpyAsync(device_rows.get(), rows.data(), device_rows.bytes(),
                                cudaMemcpyHostToDevice, stream));
  const auto spec = [&](TensorId tensor) {
    return InputSpec{p.distribution, tensor, seed, static_cast<int>(p.headdim)};
  };
  const Arguments a{spec(TensorId::q),
                    spec(TensorId::k),
                    spec(TensorId::v),
                    device_rows.get<CheckedRow>(),
                    scores.get<double>(),
                    o.get<double>(),
                    p.heads_q / p.heads_kv,
                    p.seqlen_kv,
                    p.headdim,
                    p.headdim_v,
                    softmax_scale(p)};
  unquantized_kernel<<<static_cast<unsigned>(n), kReferenceThreads, 0, stream>>>(a);
  ROOFLASH_CUDA_LAUNCHED();
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  return download<double>(o);
}

}  // namespace rooflash
