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
#include <cstdint>
#include <memory>
#include <vector>

#include "common/element.cuh"
#include "common/launch.hpp"
#include "common/mask.hpp"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"
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
  void* scores;  // [batch, heads_q, seqlen_q, row_stride], overwritten with the weights
  float* lse;    // [batch, heads_q, seqlen_q]
  std::int64_t rows;
  std::int64_t seqlen_q, seqlen_kv;
  std::int64_t row_stride;   // elements from one row of scores to the next
  std::int64_t first, last;  // the mask's band
  int kept;                  // scores of a row that fit into its shared memory
};

// Neighbouring scores that a thread moves at once, 16 bytes as one word: copying the elements would
// be a load each.
using Word = uint4;
template <class T>
constexpr int kPack = static_cast<int>(sizeof(Word) / sizeof(T));

template <class T>
__device__ __forceinline__ Word word_of(const float (&values)[kPack<T>]) {
  if constexpr (sizeof(T) == 2) {
    return make_uint4(pack<T>(values[0], values[1]), pack<T>(values[2], values[3]),
                      pack<T>(values[4], values[5]), pack<T>(values[6], values[7]));
  } else {
    return make_uint4(__float_as_uint(values[0]), __float_as_uint(values[1]),
                      __float_as_uint(values[2]), __float_as_uint(values[3]));
  }
}

// Combines `value` over the kThreads threads of a row; every one gets the result.
template <int kThreads, class Combine>
__device__ __forceinline__ float reduce(float value, Combine combine) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) {
    value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
  }
  if constexpr (kThreads > 32) {
    constexpr int kWarps = kThreads / 32;
    __shared__ float warps[kWarps];
    __syncthreads();  // the values of an earlier call have been read
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = warps[threadIdx.x % kWarps];
#pragma unroll
    for (int step = kWarps / 2; step > 0; step /= 2) {
      value = combine(value, __shfl_xor_sync(0xFFFFFFFFU, value, step));
    }
  }
  return value;
}

// exp(x - shift); the weights of 16-bit types need no more than the approximate instruction.
template <class T>
__device__ __forceinline__ float exponential(float x, float shift) {
  if constexpr (sizeof(T) == 2) {
    constexpr float kLog2E = 1.44269504F;
    return ptx::ex2(x * kLog2E - shift * kLog2E);
  } else {
    return expf(x - shift);
  }
}

// Part of a row of scores. Its copy from device memory lands in shared memory; then each of the
// kThreads threads of the row takes the packs that it copied itself, kThreads packs apart, into
// registers.
template <class T, int kThreads>
struct Part {
  static constexpr int kWidth = kPack<T>;
  static constexpr int kPacks = kSoftmaxBytesPerThread / static_cast<int>(sizeof(Word));
  T* scores;  // the row in device memory
  T* kept;    // SoftmaxArguments::kept of them
  int first_key, end_key;
  int begin, end;  // of the visible keys
  int thread;
  float values[kPacks][kWidth];  // of packs with a visible key

  // Calls use(key, pack) for each of the thread's packs.
  template <class Use>
  __device__ __forceinline__ void for_each_pack(const Use& use) const {
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      const int key = first_key + (i * kThreads + thread) * kWidth;
      if (key < end_key) use(key, i);
    }
  }
  __device__ __forceinline__ bool any_visible(int key) const {
    return begin < key + kWidth && key < end;
  }
  template <class Use>
  __device__ __forceinline__ void for_each_visible_pack(const Use& use) const {
    for_each_pack([&](int key, int i) {
      if (any_visible(key)) use(key, i);
    });
  }
  __device__ __forceinline__ Word* kept_pack(int key) const {
    return reinterpret_cast<Word*>(kept + (key - first_key));
  }
  // Starts the copy. Wholly masked packs are never looked at, nor is the room behind the row.
  __device__ __forceinline__ void start_copy() const {
    for_each_visible_pack([&](int key, int) {
      const int bytes = min(kWidth, end_key - key) * static_cast<int>(sizeof(T));
      ptx::cp_async_16_part(ptx::smem_address(kept_pack(key)), scores + key, bytes);
    });
  }
  __device__ __forceinline__ void take() {
    for_each_visible_pack([&](int key, int i) {
      const Word word = *kept_pack(key);
      const T* const elements = reinterpret_cast<const T*>(&word);
#pragma unroll
      for (int j = 0; j < kWidth; ++j) values[i][j] = to_float(elements[j]);
      if (begin <= key && key + kWidth <= end) return;
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        if (key + j < begin || end <= key + j) values[i][j] = -INFINITY;
      }
    });
  }
  __device__ __forceinline__ float maximum() const {
    float largest = -INFINITY;
    for_each_visible_pack([&](int, int i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) largest = fmaxf(largest, values[i][j]);
    });
    return largest;
  }
  // Turns the scores into exponentials and returns their sum.
  __device__ __forceinline__ float exponentiate(float shift) {
    float sum = 0.0F;
    for_each_visible_pack([&](int, int i) {
#pragma unroll
      for (int j = 0; j < kWidth; ++j) {
        values[i][j] = exponential<T>(values[i][j], shift);
        sum += values[i][j];
      }
    });
    return sum;
  }
  __device__ __forceinline__ void store_weights(float scale) const {
    for_each_pack([&](int key, int i) {
      float weights[kWidth] = {};
      if (any_visible(key)) {
#pragma unroll
        for (int j = 0; j < kWidth; ++j) weights[j] = values[i][j] * scale;
      }
      // As one store: by assignment the compiler writes its components one by one.
      __stcg(reinterpret_cast<Word*>(scores + key), word_of<T>(weights));
    });
  }
};

// One part of one row to work on. A row of several parts is passed twice: for its sum, and for its
// weights.
struct Step {
  std::int64_t row;
  std::int64_t query;
  int first_key;
  bool second_pass;
};

template <int kThreads>
constexpr int kBlockThreads = softmax_block_threads(kThreads);

template <int kThreads>
constexpr int kBlocksPerSm =
    kSoftmaxResident < kBlockThreads<kThreads> ? 1 : kSoftmaxResident / kBlockThreads<kThreads>;

}  // namespace

// Turns rows of scores into weights, a part at a time; each is loaded while the one before is
// worked on. A row that fits into the room kept for it is one part and read once, a longer one
// twice. Masked keys get weight 0; a row that sees none gets zeros and LSE -inf.
template <class T, int kThreads>
__global__ void __launch_bounds__(kBlockThreads<kThreads>, kBlocksPerSm<kThreads>)
    rf_naive_softmax(SoftmaxArguments args) {
  constexpr int kRows = kBlockThreads<kThreads> / kThreads;  // of a block
  extern __shared__ __align__(16) unsigned char smem[];
  const int seqlen_kv = static_cast<int>(args.seqlen_kv);
  const bool one_part = seqlen_kv <= args.kept;
  const int row_of_block = static_cast<int>(threadIdx.x) / kThreads;
  const std::int64_t row_step = static_cast<std::int64_t>(gridDim.x) * kRows;
  const std::int64_t query_step = row_step % args.seqlen_q;
  const auto after = [&](Step step) {
    step.first_key += args.kept;
    if (step.first_key < seqlen_kv) return step;
    step.first_key = 0;
    if (!one_part) step.second_pass = !step.second_pass;
    if (!step.second_pass) {
      step.row += row_step;
      step.query += query_step;
      if (step.query >= args.seqlen_q) step.query -= args.seqlen_q;
    }
    return step;
  };
  const auto part_of = [&](const Step& step, int buffer) {
    Part<T, kThreads> part;
    part.scores = static_cast<T*>(args.scores) + step.row * args.row_stride;
    part.kept = reinterpret_cast<T*>(smem) + (buffer * kRows + row_of_block) * args.kept;
    part.first_key = step.first_key;
    part.end_key = min(step.first_key + args.kept, seqlen_kv);
    part.begin = static_cast<int>(max(std::int64_t{0}, step.query + args.first));
    part.end = static_cast<int>(min(args.seqlen_kv, step.query + args.last + 1));
    part.thread = static_cast<int>(threadIdx.x) % kThreads;
    return part;
  };
  const auto prefetch = [&](const Step& step, int buffer) {
    if (step.row < args.rows) part_of(step, buffer).start_copy();
    ptx::cp_async_commit();
  };

  Step step{static_cast<std::int64_t>(blockIdx.x) * kRows + row_of_block, 0, 0, false};
  step.query = step.row % args.seqlen_q;
  float largest = -INFINITY;
  float sum = 0.0F;
  prefetch(step, 0);
  for (int buffer = 0; step.row < args.rows; buffer ^= 1) {
    const Step next = after(step);
    prefetch(next, buffer ^ 1);
    ptx::cp_async_wait<1>();  // all but the next part
    Part<T, kThreads> part = part_of(step, buffer);
    part.take();
    const float old_largest = largest;
    if (!step.second_pass) {
      const auto larger = [](float a, float b) { return fmaxf(a, b); };
      largest = fmaxf(largest, reduce<kThreads>(part.maximum(), larger));
    }
    // No key seen yet: 0 in place of -inf avoids inf - inf.
    const float shift = largest == -INFINITY ? 0.0F : largest;
    const float part_sum = part.exponentiate(shift);
    if (!step.second_pass) {
      sum = sum * exponential<T>(old_largest, shift) + part_sum;
      if (part.end_key == seqlen_kv) {
        sum = reduce<kThreads>(sum, [](float a, float b) { return a + b; });
      }
    }
    const bool empty = part.begin >= part.end;
    if (one_part || step.second_pass) part.store_weights(empty ? 0.0F : 1.0F / sum);
    if (next.row != step.row) {
      if (part.thread == 0) args.lse[step.row] = empty ? -INFINITY : largest + logf(sum);
      largest = -INFINITY;
      sum = 0.0F;
    }
    step = next;
  }
}

namespace {

using SoftmaxKernel = void (*)(SoftmaxArguments);

template <class T>
SoftmaxKernel softmax_kernel(std::int64_t keys) {
  switch (softmax_threads(keys, sizeof(T))) {
    case 32:
      return rf_naive_softmax<T, 32>;
    case 64:
      return rf_naive_softmax<T, 64>;
    case 128:
      return rf_naive_softmax<T, 128>;
    case 256:
      return rf_naive_softmax<T, 256>;
    default:
      return rf_naive_softmax<T, 512>;
  }
}

template <std::size_t kIndex>
struct Prepare {
  static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
    constexpr DType kDType = kVariants[kIndex].dtype;
    using T = Element<kDType>;
    const std::int64_t size = size_bytes(kDType);
    const std::int64_t row_stride = score_stride(p.seqlen_kv, size);
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
        s.push_back(at(t.workspace, (b * p.heads_q + h) * p.seqlen_q * row_stride));
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
                             p.seqlen_q,  p.seqlen_kv, row_stride,
                             band.first,  band.last,   softmax_kept(p.seqlen_kv, size)};
    const SoftmaxKernel kernel = softmax_kernel<T>(p.seqlen_kv);
    const int row_threads = softmax_threads(p.seqlen_kv, size);
    const int threads = softmax_block_threads(row_threads);
    const int rows_per_block = threads / row_threads;
    const int smem = 2 * rows_per_block * softmax.kept * static_cast<int>(size);
    check_launch(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, smem),
                 "setting the softmax's shared memory");
    // As many blocks as run at once: each goes on with further rows, which costs less than a
    // launch.
    const std::int64_t blocks = (softmax.rows + rows_per_block - 1) / rows_per_block;
    const auto grid = static_cast<unsigned>(std::min<std::int64_t>(
        blocks, std::int64_t{device.sm_count} * std::max(1, kSoftmaxResident / threads)));
    const Resources resources =
        prepare_kernel(reinterpret_cast<const void*>(kernel), threads, smem, grid, device.sm_count);

    const auto launch = [p, operands, softmax, kernel, threads, smem, grid](CUstream_st* stream) {
      constexpr cudaDataType_t kType = kBlasType<kDType>;
      constexpr cublasComputeType_t kCompute =
          kDType == DType::fp32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
      const auto sq = static_cast<int>(p.seqlen_q);
      const auto sk = static_cast<int>(p.seqlen_kv);
      const auto s_stride = static_cast<int>(softmax.row_stride);
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
                                         s_stride, count, kCompute, CUBLAS_GEMM_DEFAULT),
                     "GEMM of the scores");
      }
      kernel<<<grid, static_cast<unsigned>(threads), static_cast<std::size_t>(smem), stream>>>(
          softmax);
      check_launch(cudaGetLastError(), "launching rf_naive_softmax");
      for (std::int64_t first = 0; first < heads; first += kChunk) {
        const auto count = static_cast<int>(std::min(kChunk, heads - first));
        // O^T [dv x sq] = V^T P^T.
        check_cublas(cublasGemmBatchedEx(blas(), CUBLAS_OP_N, CUBLAS_OP_N, dv, sq, sk, &one,
                                         operands->v.get() + first, kType, v_stride,
                                         operands->s.get() + first, kType, s_stride, &zero,
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
