// The fp64 reference on the GPU. It shares no code with any kernel family: one block a row,
// scores in a buffer, two passes.
#include <algorithm>
#include <cmath>
#include <span>
#include <type_traits>
#include <vector>

#include "core/fp8.hpp"
#include "gpu/check.hpp"
#include "verify/emulation.hpp"
#include "verify/gpu_elements.cuh"
#include "verify/gpu_reduce.cuh"
#include "verify/gpu_unquantized.hpp"
#include "verify/gpu_verify.hpp"
#include "verify/judge.hpp"
#include "verify/sampling.hpp"

namespace rooflash {
namespace {

constexpr int kThreads = kReferenceThreads;

struct ReferenceArguments {
  const void *q, *k, *v, *o;
  const float* lse;
  const CheckedRow* rows;
  double* scores;       // [rows, seqlen_kv]
  float* eager_scores;  // [rows, seqlen_kv], rounded as eager code keeps them
  double* ref_o;        // [rows, headdim_v]
  double* ref_lse;      // [rows]
  float* eager_o;
  float* eager_lse;
  float* actual_o;
  float* actual_lse;
  std::int64_t heads_q, heads_kv, seqlen_q, seqlen_kv, headdim, headdim_v;
  double scale;
  Scales scales;  // of e4m3
  std::int64_t q_scale_blocks, kv_scale_blocks;
};

// What eager code keeps S in.
template <class T>
using KeptScore = std::conditional_t<std::is_same_v<T, __nv_fp8_e4m3>, __nv_bfloat16, T>;

// What the values of one row's head are worth: 1 where they are no e4m3.
template <class T>
struct RowScales {
  static constexpr bool kQuantized = std::is_same_v<T, __nv_fp8_e4m3>;

  __device__ RowScales(const ReferenceArguments& a, const CheckedRow& row, std::int64_t head_kv) {
    if constexpr (kQuantized) {
      const std::int64_t kv = row.batch * a.heads_kv + head_kv;
      q = a.scales.q[(row.batch * a.heads_q + row.head) * a.q_scale_blocks + row.row / kScaleRowsQ];
      v = a.scales.v[kv];
      k = a.scales.k + kv * a.kv_scale_blocks;
      v_log2 = a.scales.v_log2 + kv * a.kv_scale_blocks;
      if (a.scales.v_mean != nullptr) v_mean = a.scales.v_mean + kv * a.headdim_v;
    }
  }
  // Of q . K[j], and of V[j].
  template <class Number>
  __device__ Number score(std::int64_t j) const {
    if constexpr (kQuantized) {
      return static_cast<Number>(q) * static_cast<Number>(k[j / kScaleRowsKv]);
    } else {
      return 1;
    }
  }
  template <class Number>
  __device__ Number value(std::int64_t j) const {
    if constexpr (kQuantized) {
      return ldexp(static_cast<Number>(v), static_cast<int>(v_log2[j / kScaleRowsKv]));
    } else {
      return 1;
    }
  }

  float q = 1;
  float v = 1;
  const float* k = nullptr;
  const float* v_log2 = nullptr;
  const float* v_mean = nullptr;  // null: 0
};

// One block a row: T is the input type, Out the output type.
template <class T, class Out>
__global__ void __launch_bounds__(kThreads) reference_kernel(ReferenceArguments a) {
  __shared__ double shared[kThreads];
  __shared__ float shared_float[kThreads];
  const std::int64_t index = blockIdx.x;
  const CheckedRow row = a.rows[index];
  const std::int64_t head_kv = row.head / (a.heads_q / a.heads_kv);
  const T* q = static_cast<const T*>(a.q) +
               ((row.batch * a.seqlen_q + row.row) * a.heads_q + row.head) * a.headdim;
  const T* k =
      static_cast<const T*>(a.k) + (row.batch * a.seqlen_kv * a.heads_kv + head_kv) * a.headdim;
  const T* v =
      static_cast<const T*>(a.v) + (row.batch * a.seqlen_kv * a.heads_kv + head_kv) * a.headdim_v;
  const Out* o = static_cast<const Out*>(a.o) +
                 ((row.batch * a.seqlen_q + row.row) * a.heads_q + row.head) * a.headdim_v;
  double* scores = a.scores + index * a.seqlen_kv;
  float* eager = a.eager_scores + index * a.seqlen_kv;
  const RowScales<T> scales(a, row, head_kv);

  // One thread a key: the emulation adds in sequence, as a GEMM does. A tree of partial sums would
  // be more exact than any kernel can be in fp32.
  for (std::int64_t j = row.begin + threadIdx.x; j < row.end; j += kThreads) {
    const T* key = k + j * a.heads_kv * a.headdim;
    double exact = 0;
    float single = 0;
    for (std::int64_t c = 0; c < a.headdim; ++c) {
      const float x = as_float(q[c]);
      const float y = as_float(key[c]);
      exact += static_cast<double>(x) * y;
      single += x * y;
    }
    scores[j] = exact * scales.template score<double>(j) * a.scale;
    const float scaled = single * scales.template score<float>(j) * static_cast<float>(a.scale);
    const float kept = as_float(rounded<KeptScore<T>>(scaled));
    eager[j] = isfinite(kept) ? kept : scaled;
  }
  __syncthreads();
  double largest = -INFINITY;
  float eager_largest = -INFINITY;
#pragma unroll 1
  for (std::int64_t j = row.begin + threadIdx.x; j < row.end; j += kThreads) {
    largest = fmax(largest, scores[j]);
    eager_largest = fmaxf(eager_largest, eager[j]);
  }
  largest = block_reduce(largest, shared, [](double x, double y) { return fmax(x, y); });
  eager_largest =
      block_reduce(eager_largest, shared_float, [](float x, float y) { return fmaxf(x, y); });
  double sum = 0;
#pragma unroll 1
  for (std::int64_t j = row.begin + threadIdx.x; j < row.end; j += kThreads) {
    scores[j] = exp(scores[j] - largest);
    sum += scores[j];
    eager[j] = expf(eager[j] - eager_largest);
  }
  sum = block_reduce(sum, shared, [](double x, double y) { return x + y; });
  if (threadIdx.x == 0) {
    float in_sequence = 0;
#pragma unroll 8
    for (std::int64_t j = row.begin; j < row.end; ++j) in_sequence += eager[j];
    shared_float[0] = in_sequence;
  }
  __syncthreads();
  const float eager_sum = shared_float[0];
#pragma unroll 1
  for (std::int64_t j = row.begin + threadIdx.x; j < row.end; j += kThreads) {
    scores[j] = scores[j] / sum * scales.template value<double>(j);
    if constexpr (RowScales<T>::kQuantized) {
      eager[j] = as_float(rounded<T>(eager[j] * kTopWeight)) / (kTopWeight * eager_sum) *
                 scales.template value<float>(j);
    } else {
      eager[j] = as_float(rounded<T>(eager[j] / eager_sum));
    }
  }
  __syncthreads();
  const bool empty = row.begin >= row.end;
  const float unit = std::is_same_v<Out, __nv_fp8_e4m3> ? scales.v : 1.0F;
  for (std::int64_t c = threadIdx.x; c < a.headdim_v; c += kThreads) {
    double exact = 0;
    float single = 0;
#pragma unroll 4
    for (std::int64_t j = row.begin; j < row.end; ++j) {
      const float value = as_float(v[j * a.heads_kv * a.headdim_v + c]);
      exact += scores[j] * value;
      single += eager[j] * value;
    }
    if (scales.v_mean != nullptr && !empty) {  // the weights add up to 1
      exact += scales.v_mean[c];
      single += scales.v_mean[c];
    }
    a.ref_o[index * a.headdim_v + c] = exact;
    a.eager_o[index * a.headdim_v + c] = as_float(rounded<Out>(single / unit)) * unit;
    a.actual_o[index * a.headdim_v + c] = as_float(o[c]) * unit;
  }
  if (threadIdx.x == 0) {
    a.ref_lse[index] = empty ? -INFINITY : largest + log(sum);
    a.eager_lse[index] = empty ? -INFINITY : eager_largest + logf(eager_sum);
    a.actual_lse[index] = a.lse[(row.batch * a.heads_q + row.head) * a.seqlen_q + row.row];
  }
}

template <class T>
__global__ void count_nonfinite_kernel(const T* values, std::int64_t elements,
                                       unsigned long long* count) {
  const std::int64_t step = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  unsigned long long found = 0;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
       i < elements; i += step) {
    found += isfinite(as_float(values[i])) ? 0 : 1;
  }
  if (found > 0) atomicAdd(count, found);
}

constexpr unsigned kCountBlocks = 2048;

}  // namespace

VerifyResult verify_on_gpu(const Problem& p, std::uint64_t seed, const Tensors& t,
                           CUstream_st* stream) {
  // About 2^25 scores and 2^20 outputs are checked: milliseconds on any GPU.
  const std::int64_t max_rows = std::clamp<std::int64_t>(
      (std::int64_t{1} << 25) / std::max(p.seqlen_kv, p.headdim_v * 32), 64, 2048);
  const RowSample sample = sample_rows(p, max_rows, seed);
  std::vector<CheckedRow> rows;
  for (const SampledRow& s : sample.rows) {
    const KeyRange keys = visible_keys(p, s.row);
    rows.push_back({s.batch, s.head, s.row, keys.begin, keys.end});
  }
  const std::size_t n = rows.size();
  const auto keys = static_cast<std::size_t>(p.seqlen_kv);
  const auto width = static_cast<std::size_t>(p.headdim_v);
  const DeviceBuffer device_rows(n * sizeof(CheckedRow));
  const DeviceBuffer scores(n * keys * 8), eager_scores(n * keys * 4);
  const DeviceBuffer ref_o(n * width * 8), eager_o(n * width * 4), actual_o(n * width * 4);
  const DeviceBuffer ref_lse(n * 8), eager_lse(n * 4), actual_lse(n * 4), nonfinite(8);
  ROOFLASH_CUDA(cudaMemcpyAsync(device_rows.get(), rows.data(), device_rows.bytes(),
                                cudaMemcpyHostToDevice, stream));
  ROOFLASH_CUDA(cudaMemsetAsync(nonfinite.get(), 0, 8, stream));
  ReferenceArguments a{};
  a.q = t.q;
  a.k = t.k;
  a.v = t.v;
  a.o = t.o;
  a.lse = t.lse;
  a.rows = device_rows.get<CheckedRow>();
  a.scores = scores.get<double>();
  a.eager_scores = eager_scores.get<float>();
  a.ref_o = ref_o.get<double>();
  a.ref_lse = ref_lse.get<double>();
  a.eager_o = eager_o.get<float>();
  a.eager_lse = eager_lse.get<float>();
  a.actual_o = actual_o.get<float>();
  a.actual_lse = actual_lse.get<float>();
  a.heads_q = p.heads_q;
  a.heads_kv = p.heads_kv;
  a.seqlen_q = p.seqlen_q;
  a.seqlen_kv = p.seqlen_kv;
  a.headdim = p.headdim;
  a.headdim_v = p.headdim_v;
  a.scale = softmax_scale(p);
  a.scales = t.scales;
  a.q_scale_blocks = q_scale_blocks(p);
  a.kv_scale_blocks = kv_scale_blocks(p);
  const auto launch = [&](auto in, auto out) {
    using Out = decltype(out);
    reference_kernel<decltype(in), Out><<<static_cast<unsigned>(n), kThreads, 0, stream>>>(a);
    ROOFLASH_CUDA_LAUNCHED();
    count_nonfinite_kernel<Out><<<kCountBlocks, kThreads, 0, stream>>>(
        static_cast<const Out*>(t.o), o_elements(p), nonfinite.get<unsigned long long>());
    ROOFLASH_CUDA_LAUNCHED();
  };
  with_element(p.dtype, [&](auto in) {
    if constexpr (!std::is_same_v<decltype(in), __nv_fp8_e4m3>) {
      launch(in, in);
    } else if (output_dtype(p) == DType::fp16) {
      launch(in, __half{});
    } else if (output_dtype(p) == DType::e4m3) {
      launch(in, __nv_fp8_e4m3{});
    } else {
      launch(in, __nv_bfloat16{});
    }
  });
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));

  const auto h_ref_o = download<double>(ref_o);
  const auto h_eager_o = download<float>(eager_o);
  const auto h_actual_o = download<float>(actual_o);
  const auto h_ref_lse = download<double>(ref_lse);
  const auto h_eager_lse = download<float>(eager_lse);
  const auto h_actual_lse = download<float>(actual_lse);
  const auto bad = download<unsigned long long>(nonfinite)[0];
  const std::vector<double> unquantized =
      p.dtype == DType::e4m3 ? unquantized_outputs(p, seed, rows, stream) : std::vector<double>();
  Judge judge(p);
  for (std::size_t i = 0; i < n; ++i) {
    const std::span<const float> actual(&h_actual_o[i * width], width);
    judge.add_row(sample.rows[i], actual, {&h_ref_o[i * width], width},
                  {&h_eager_o[i * width], width}, h_actual_lse[i], h_ref_lse[i], h_eager_lse[i]);
    if (!unquantized.empty() && rows[i].begin < rows[i].end) {
      judge.add_unquantized_row(actual, {&unquantized[i * width], width});
    }
  }
  if (bad > 0) judge.add_nonfinite(static_cast<std::int64_t>(bad), "all of O");
  return judge.result(sample);
}

}  // namespace rooflash
