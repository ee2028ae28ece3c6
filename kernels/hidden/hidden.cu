// The test families on CUDA: a plain attention kernel and the faults around it. They prove that a
// wrong, silent, crashing, hanging or slow kernel costs one row and no more.
#include <cuda_runtime.h>

#include <cmath>
#include <csignal>

#include "common/element.cuh"
#include "common/launch.hpp"
#include "common/mask.hpp"
#include "prepare.hpp"
#include "variants.hpp"

namespace rooflash {
namespace hidden {

struct Arguments {
  const void *q, *k, *v;
  void* o;
  float* lse;
  std::int64_t heads_q, heads_kv, seqlen_q, seqlen_kv, headdim, headdim_v, rows;
  std::int64_t first, last;
  float scale;
  float output_factor;  // 1 is right
};

// One warp a query row, two passes over the keys. Slow and simple.
template <class T>
__global__ void rf_test_attention(Arguments a) {
  const int lane = static_cast<int>(threadIdx.x);
  for (std::int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
    const std::int64_t query = row % a.seqlen_q;
    const std::int64_t head = row / a.seqlen_q % a.heads_q;
    const std::int64_t batch = row / a.seqlen_q / a.heads_q;
    const std::int64_t head_kv = head / (a.heads_q / a.heads_kv);
    const T* q =
        static_cast<const T*>(a.q) + ((batch * a.seqlen_q + query) * a.heads_q + head) * a.headdim;
    const T* k =
        static_cast<const T*>(a.k) + (batch * a.seqlen_kv * a.heads_kv + head_kv) * a.headdim;
    const T* v =
        static_cast<const T*>(a.v) + (batch * a.seqlen_kv * a.heads_kv + head_kv) * a.headdim_v;
    T* o = static_cast<T*>(a.o) + ((batch * a.seqlen_q + query) * a.heads_q + head) * a.headdim_v;
    const std::int64_t begin = max(std::int64_t{0}, query + a.first);
    const std::int64_t end = min(a.seqlen_kv, query + a.last + 1);
    float largest = -INFINITY;
    float sum = 0.0F;
    float out[4] = {0.0F, 0.0F, 0.0F, 0.0F};  // columns lane, lane + 32, ...
    for (std::int64_t j = begin; j < end; ++j) {
      float score = 0.0F;
      for (std::int64_t c = lane; c < a.headdim; c += 32) {
        score += to_float(q[c]) * to_float(k[j * a.heads_kv * a.headdim + c]);
      }
      for (int step = 16; step > 0; step /= 2) score += __shfl_xor_sync(0xFFFFFFFFU, score, step);
      score *= a.scale;
      const float new_largest = fmaxf(largest, score);
      const float rescale = expf(largest - new_largest);
      const float weight = expf(score - new_largest);
      largest = new_largest;
      sum = sum * rescale + weight;
      for (int i = 0; i < 4; ++i) {
        const std::int64_t c = lane + 32 * i;
        const float value = c < a.headdim_v ? to_float(v[j * a.heads_kv * a.headdim_v + c]) : 0.0F;
        out[i] = out[i] * rescale + weight * value;
      }
    }
    for (int i = 0; i < 4; ++i) {
      const std::int64_t c = lane + 32 * i;
      const float value = sum == 0.0F ? 0.0F : out[i] / sum * a.output_factor;
      if (c < a.headdim_v) o[c] = from_float<T>(value);
    }
    if (lane == 0) a.lse[row] = sum == 0.0F ? -INFINITY : largest + logf(sum);
  }
}

template <class T>
__global__ void rf_test_write_nan(T* o) {
  o[0] = from_float<T>(NAN);
}
__global__ void rf_test_noop() {}
__global__ void rf_test_spin(const volatile int* never) {
  while (*never == 0) {
  }
}
__global__ void rf_test_illegal(int* nowhere) {
  *nowhere = 1;
}
__global__ void rf_test_sleep(int milliseconds) {
  for (int i = 0; i < milliseconds * 2; ++i) __nanosleep(500000);
}

enum class Fault { wrong, nan, noop, crash, hang, illegal, slow };

template <class T>
Launch faulty_launch(Fault fault, const Problem& p, const Tensors& t) {
  const Band band = band_of(p);
  const Arguments args{t.q,
                       t.k,
                       t.v,
                       t.o,
                       t.lse,
                       p.heads_q,
                       p.heads_kv,
                       p.seqlen_q,
                       p.seqlen_kv,
                       p.headdim,
                       p.headdim_v,
                       p.batch * p.heads_q * p.seqlen_q,
                       band.first,
                       band.last,
                       static_cast<float>(softmax_scale(p)),
                       fault == Fault::wrong ? 1.01F : 1.0F};
  const auto grid = static_cast<unsigned>(std::min<std::int64_t>(args.rows, 1 << 20));
  return [args, grid, fault](CUstream_st* stream) {
    switch (fault) {
      case Fault::noop:
        rf_test_noop<<<1, 1, 0, stream>>>();
        break;
      case Fault::crash:
        std::raise(SIGSEGV);
        break;
      case Fault::hang: {
        int* never = nullptr;
        check_launch(cudaMalloc(&never, sizeof(int)), "allocating the flag");
        check_launch(cudaMemsetAsync(never, 0, sizeof(int), stream), "clearing the flag");
        rf_test_spin<<<1, 1, 0, stream>>>(never);
        break;
      }
      case Fault::illegal:
        rf_test_illegal<<<1, 1, 0, stream>>>(reinterpret_cast<int*>(16));
        break;
      case Fault::slow:
        rf_test_sleep<<<1, 1, 0, stream>>>(20);
        [[fallthrough]];
      case Fault::wrong:
      case Fault::nan:
        rf_test_attention<T><<<grid, 32, 0, stream>>>(args);
        break;
    }
    if (fault == Fault::nan) rf_test_write_nan<<<1, 1, 0, stream>>>(static_cast<T*>(args.o));
    check_launch(cudaGetLastError(), "launching a test kernel");
  };
}

template <Fault kFault>
struct Family {
  template <std::size_t kIndex>
  struct Prepare {
    static Prepared run(const Problem& p, const Tensors& t, const DeviceLimits& device) {
      using T = Element<kVariants[kIndex].dtype>;
      const auto* function = reinterpret_cast<const void*>(&rf_test_attention<T>);
      return {faulty_launch<T>(kFault, p, t),
              prepare_kernel(function, 32, 0, p.batch * p.heads_q * p.seqlen_q, device.sm_count)};
    }
  };
  static constexpr auto kTable = bind_variants<kVariants, Prepare>();
};

}  // namespace hidden

#define ROOFLASH_TEST_FAMILY(fault)                                                           \
  namespace test_##fault {                                                                    \
    extern const std::span<const PrepareFn> kPrepare;                                         \
    const std::span<const PrepareFn> kPrepare = hidden::Family<hidden::Fault::fault>::kTable; \
  }
ROOFLASH_TEST_FAMILY(wrong)
ROOFLASH_TEST_FAMILY(nan)
ROOFLASH_TEST_FAMILY(noop)
ROOFLASH_TEST_FAMILY(crash)
ROOFLASH_TEST_FAMILY(hang)
ROOFLASH_TEST_FAMILY(illegal)
ROOFLASH_TEST_FAMILY(slow)

}  // namespace rooflash
