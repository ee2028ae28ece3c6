// Attention as three kernels, the unfused baseline: GEMM, softmax, GEMM.
//
// The scores live in memory in the input type, as eager PyTorch keeps them, with fp32 accumulation;
// the softmax overwrites them with the weights. cuBLAS reads Q, K, V through arrays of pointers,
// one per (batch item, query head), so grouped heads need no copies. Expected limit: HBM traffic of
// the scores, four times over.
#include <cublas_v2.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "common/element.cuh"
#include "common/launch.hpp"
#include "common/mask.cuh"
#include "config.hpp"
#include "core/error.hpp"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash::naive {
namespace {

void check_cublas(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw Error(ExitCode::incomplete, std::string(what) + ": " + cublasGetStatusString(status));
}

// One handle for the process: creating one allocates and synchronises.
cublasHandle_t blas() {
  static cublasHandle_t handle = [] {
    cublasHandle_t created = nullptr;
    check_cublas(cublasCreate(&created), "cublasCreate");
    return created;
  }();
  return handle;
}

template <DType kDType>
constexpr cudaDataType_t kBlasType = kDType == DType::fp16   ? CUDA_R_16F
                                     : kDType == DType::bf16 ? CUDA_R_16BF
                                                             : CUDA_R_32F;

// Pointers of one operand, one per (batch item, query head).
class PointerArray {
 public:
  explicit PointerArray(const std::vector<const void*>& pointers) {
    const std::size_t bytes = pointers.size() * sizeof(void*);
    check_launch(cudaMalloc(&data_, bytes), "allocating GEMM pointers");
    check_launch(cudaMemcpy(data_, pointers.data(), bytes, cudaMemcpyHostToDevice),
                 "copying GEMM pointers");
    // From pageable memory the call may return before the copy has landed, and the launches run on
    // a stream that does not wait for it.
    check_launch(cudaStreamSynchronize(cudaStreamLegacy), "copying GEMM pointers");
  }
  ~PointerArray() { (void)cudaFree(data_); }
  PointerArray(const PointerArray&) = delete;
  PointerArray& operator=(const PointerArray&) = delete;
  const void* const* get() const { return static_cast<const void* const*>(data_); }

 private:
  void* data_ = nullptr;
};

struct SoftmaxArguments {
  void* scores;  // [batch, heads_q, seqlen_q, seqlen_kv], overwritten with the weights
  float* lse;    // [batch, heads_q, seqlen_q]
  std::int64_t rows;
  std::int64_t seqlen_q, seqlen_kv;
  std::int64_t first, last;  // the mask's band
};

// Neighbouring scores that a thread moves at once.
template <class T, int kWidth>
struct alignas(kWidth * sizeof(T)) Pack {
  T values[kWidth];
};

// Combines `value` over the block; every thread gets the result.
template <int kThreads, class Combine>
__device__ __forceinline__ float reduce(float value, Combine combine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
  }
  __shared__ float warps[kThreads / 32];
  __syncthreads();  // the values of an earlier call have been read
  if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
  __syncthreads();
  value = warps[0];
  for (int i = 1; i < kThreads / 32; ++i) value = combine(value, warps[i]);
  return value;
}

// One row of scores as its threads see it.
template <class T, int kThreads, int kWidth>
struct Row {
  static constexpr int kChunks = kSoftmaxKeysPerThread / kWidth;
  static constexpr int kKeys = kThreads * kSoftmaxKeysPerThread;

  T* scores;
  int seqlen_kv;
  int begin, end;  // of the visible keys

  __device__ int first_key(int part, int chunk) const {
    return part * kKeys + (chunk * kThreads + static_cast<int>(threadIdx.x)) * kWidth;
  }
  // Keys that are masked, or beyond the row, come as -inf.
  __device__ void load(float (&values)[kSoftmaxKeysPerThread], int part) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int first = first_key(part, c);
      Pack<T, kWidth> pack{};
      if (first < seqlen_kv) pack = *reinterpret_cast<const Pack<T, kWidth>*>(scores + first);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const bool visible = begin <= first + i && first + i < end;
        values[c * kWidth + i] = visible ? to_float(pack.values[i]) : -INFINITY;
      }
    }
  }
  __device__ void store(const float (&values)[kSoftmaxKeysPerThread], int part) const {
#pragma unroll
    for (int c = 0; c < kChunks; ++c) {
      const int first = first_key(part, c);
      if (first >= seqlen_kv) continue;
      Pack<T, kWidth> pack;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) pack.values[i] = from_float<T>(values[c * kWidth + i]);
      *reinterpret_cast<Pack<T, kWidth>*>(scores + first) = pack;
    }
  }
};

}  // namespace

// Turns rows of scores into weights, one block a row. A row that its threads can hold is read once;
// a longer one is taken in parts, for the sum and once more for the weights. Masked keys get weight
// 0; a row that sees none gets zeros and LSE -inf.
template <class T, int kThreads, int kWidth>
__global__ void __launch_bounds__(kThreads, 1024 / kThreads)
    rf_naive_softmax(SoftmaxArguments args) {
  using R = Row<T, kThreads, kWidth>;
  const auto add = [](float a, float b) { return a + b; };
  const auto larger = [](float a, float b) { return fmaxf(a, b); };
  const int seqlen_kv = static_cast<int>(args.seqlen_kv);
  const int parts = (seqlen_kv + R::kKeys - 1) / R::kKeys;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const std::int64_t query = row % args.seqlen_q;
    const R r{static_cast<T*>(args.scores) + row * args.seqlen_kv, seqlen_kv,
              static_cast<int>(max(std::int64_t{0}, query + args.first)),
              static_cast<int>(min(args.seqlen_kv, query + args.last + 1))};
    float values[kSoftmaxKeysPerThread];
    float largest = -INFINITY;
    float sum = 0.0F;
    for (int part = 0; part < parts; ++part) {
      r.load(values, part);
      float part_largest = largest;
#pragma unroll
      for (const float value : values) part_largest = fmaxf(part_largest, value);
      part_largest = reduce<kThreads>(part_largest, larger);
      // No key seen yet: 0 in place of -inf avoids inf - inf.
      const float shift = part_largest == -INFINITY ? 0.0F : part_largest;
      sum *= expf(largest - shift);
      largest = part_largest;
#pragma unroll
      for (float& value : values) {
        value = expf(value - shift);
        sum += value;
      }
    }
    sum = reduce<kThreads>(sum, add);
    const bool empty = r.begin >= r.end;
    const float divisor = empty ? 1.0F : sum;
    for (int part = 0; part < parts; ++part) {
      if (parts > 1) {
        r.load(values, part);
#pragma unroll
        for (float& value : values) value = expf(value - (empty ? 0.0F : largest));
      }
#pragma unroll
      for (float& value : values) value = value / divisor;
      r.store(values, part);
    }
    if (threadIdx.x == 0) args.lse[row] = empty ? -INFINITY : largest + logf(sum);
  }
}

namespace {

using SoftmaxKernel = void (*)(SoftmaxArguments);

// The kernel for rows of `keys` scores; rows of whole 16-byte packs move those.
template <class T>
SoftmaxKernel softmax_kernel(std::int64_t keys) {
  constexpr int kPack = 16 / static_cast<int>(sizeof(T));
  const bool packs = keys % kPack == 0;
  switch (softmax_threads(keys)) {
    case 64:
      return packs ? rf_naive_softmax<T, 64, kPack> : rf_naive_softmax<T, 64, 1>;
    case 256:
      return packs ? rf_naive_softmax<T, 256, kPack> : rf_naive_softmax<T, 256, 1>;
    default:
      return packs ? rf_naive_softmax<T, 1024, kPack> : rf_naive_softmax<T, 1024, 1>;
  }
}

template <std::size_t kIndex>
struct Prepare {
  static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
    constexpr DType kDType = kVariants[kIndex].dtype;
    using T = Element<kDType>;
    const std::int64_t size = size_bytes(kDType);
    std::vector<const void*> q, k, v, s, o;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.heads_q; ++h) {
        const std::int64_t h_kv = h / (p.heads_q / p.heads_kv);
        const auto at = [size](const void* base, std::int64_t element) {
          return static_cast<const char*>(base) + element * size;
        };
        q.push_back(at(t.q, (b * p.seqlen_q * p.heads_q + h) * p.headdim));
        k.push_back(at(t.k, (b * p.seqlen_kv * p.heads_kv + h_kv) * p.headdim));
        v.push_back(at(t.v, (b * p.seqlen_kv * p.heads_kv + h_kv) * p.headdim_v));
        s.push_back(at(t.workspace, (b * p.heads_q + h) * p.seqlen_q * p.seqlen_kv));
        o.push_back(at(t.o, (b * p.seqlen_q * p.heads_q + h) * p.headdim_v));
      }
    }
    struct Operands {
      PointerArray q, k, v, s, o;
    };
    const auto operands = std::shared_ptr<Operands>(new Operands{
        PointerArray(q), PointerArray(k), PointerArray(v), PointerArray(s), PointerArray(o)});

    const Band band = band_of(p);
    SoftmaxArguments softmax{t.workspace, t.lse,       p.batch * p.heads_q * p.seqlen_q,
                             p.seqlen_q,  p.seqlen_kv, band.first,
                             band.last};
    const SoftmaxKernel kernel = softmax_kernel<T>(p.seqlen_kv);
    const int threads = softmax_threads(p.seqlen_kv);
    const auto grid = static_cast<unsigned>(std::min<std::int64_t>(softmax.rows, 2147483647));
    const Resources resources =
        prepare_kernel(reinterpret_cast<const void*>(kernel), threads, 0, grid, device.sm_count);

    const auto launch = [p, operands, softmax, kernel, threads, grid](CUstream_st* stream) {
      constexpr cudaDataType_t kType = kBlasType<kDType>;
      constexpr cublasComputeType_t kCompute =
          kDType == DType::fp32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
      const auto sq = static_cast<int>(p.seqlen_q);
      const auto sk = static_cast<int>(p.seqlen_kv);
      const auto d = static_cast<int>(p.headdim);
      const auto dv = static_cast<int>(p.headdim_v);
      const auto q_stride = static_cast<int>(p.heads_q * p.headdim);
      const auto k_stride = static_cast<int>(p.heads_kv * p.headdim);
      const auto v_stride = static_cast<int>(p.heads_kv * p.headdim_v);
      const auto o_stride = static_cast<int>(p.heads_q * p.headdim_v);
      const auto scale = static_cast<float>(softmax_scale(p));
      const float one = 1.0F;
      const float zero = 0.0F;
      check_cublas(cublasSetStream(blas(), stream), "cublasSetStream");
      // Batch counts stay below the grid limit of 65,535.
      constexpr std::int64_t kChunk = 32768;
      const std::int64_t heads = p.batch * p.heads_q;
      for (std::int64_t first = 0; first < heads; first += kChunk) {
        const auto count = static_cast<int>(std::min(kChunk, heads - first));
        // cuBLAS is column-major: S^T [sk x sq] = K Q^T.
        check_cublas(cublasGemmBatchedEx(blas(), CUBLAS_OP_T, CUBLAS_OP_N, sk, sq, d, &scale,
                                         operands->k.get() + first, kType, k_stride,
                                         operands->q.get() + first, kType, q_stride, &zero,
                                         const_cast<void* const*>(operands->s.get() + first), kType,
                                         sk, count, kCompute, CUBLAS_GEMM_DEFAULT),
                     "GEMM of the scores");
      }
      kernel<<<grid, static_cast<unsigned>(threads), 0, stream>>>(softmax);
      check_launch(cudaGetLastError(), "launching rf_naive_softmax");
      for (std::int64_t first = 0; first < heads; first += kChunk) {
        const auto count = static_cast<int>(std::min(kChunk, heads - first));
        // O^T [dv x sq] = V^T P^T.
        check_cublas(cublasGemmBatchedEx(blas(), CUBLAS_OP_N, CUBLAS_OP_N, dv, sq, sk, &one,
                                         operands->v.get() + first, kType, v_stride,
                                         operands->s.get() + first, kType, sk, &zero,
                                         const_cast<void* const*>(operands->o.get() + first), kType,
                                         o_stride, count, kCompute, CUBLAS_GEMM_DEFAULT),
                     "GEMM of the output");
      }
    };
    return {launch, resources};
  }
};

constexpr auto kPrepareTable = bind_variants<kVariants, Prepare>();

}  // namespace

extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::naive
