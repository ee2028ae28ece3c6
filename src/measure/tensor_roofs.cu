#include <cstdint>
#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include "common/element.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"
#include "common/ptx/wgmma.cuh"
#include "gpu/check.hpp"
#include "measure/gemm.hpp"
#include "measure/unit_roofs.hpp"

namespace rooflash {
namespace {

// Bytes of random values that the operands are taken from.
constexpr std::int64_t kRandomBytes = std::int64_t{1} << 20;

// wgmma: two warpgroups an SM, each a chain of 64 x 256 products over the same four stages of
// operands, 128 bytes of K deep. Nothing is loaded meanwhile.
constexpr int kWarpgroups = 2;
constexpr int kStages = 4;
constexpr int kRowBytes = 128;
constexpr int kStageA = 64 * kRowBytes;
constexpr int kStageB = 256 * kRowBytes;
constexpr int kStageBytes = kWarpgroups * kStageA + kStageB;
constexpr int kAlignment = 1024;
constexpr int kWgmmaSmem = kStages * kStageBytes + kAlignment;

template <ptx::WgmmaType kType>
__global__ void __launch_bounds__(128 * kWarpgroups, 1)
    wgmma_loop(float* sums, const uint4* random, int iterations) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char raw[];
  const std::uint32_t base = (ptx::smem_address(raw) + kAlignment - 1) & ~(kAlignment - 1U);
  unsigned char* const smem = raw + (base - ptx::smem_address(raw));
  constexpr int kChunks = kStages * kStageBytes / 16;
  for (int i = static_cast<int>(threadIdx.x); i < kChunks; i += static_cast<int>(blockDim.x)) {
    reinterpret_cast<uint4*>(smem)[i] = random[(i + 97 * blockIdx.x) % (kRandomBytes / 16)];
  }
  ptx::fence_proxy_async();
  __syncthreads();
  const std::uint32_t group = threadIdx.x / 128;
  float d[32][4] = {};
  for (int iteration = 0; iteration < iterations; ++iteration) {
    ptx::wgmma_fence();
#pragma unroll
    for (std::uint32_t stage = 0; stage < kStages; ++stage) {
      const std::uint32_t b = base + stage * kStageBytes;
      const std::uint32_t a = b + kStageB + group * kStageA;
#pragma unroll
      for (std::uint32_t k = 0; k < kRowBytes; k += 32) {
        ptx::wgmma_ss<kType, 256>(d, ptx::wgmma_descriptor(a + k), ptx::wgmma_descriptor(b + k));
      }
    }
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
  }
  float sum = 0.0F;
#pragma unroll
  for (const auto& block : d) sum += block[0] + block[1] + block[2] + block[3];
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
#endif
}

// Operations of one iteration of a warpgroup.
double wgmma_ops(std::int64_t element_bytes) {
  return 2.0 * 64 * 256 * static_cast<double>(kRowBytes / element_bytes) * kStages;
}

// mma.sync: 16 warps an SM, each eight independent chains of 16 x 8 x 16 products on operands that
// stay in registers.
constexpr int kMmaThreads = 512;
constexpr int kMmaUnroll = 4;

template <class T>
__global__ void __launch_bounds__(kMmaThreads)
    mma_loop(float* sums, const uint4* random, int iterations) {
  const uint4* mine = random + (threadIdx.x + 512 * blockIdx.x) % (kRandomBytes / 32);
  const uint4 first = mine[0];
  const uint4 second = mine[512];
  const std::uint32_t a[2][4] = {{first.x, first.y, first.z, first.w},
                                 {second.x, second.y, second.z, second.w}};
  const std::uint32_t b[4][2] = {
      {first.x, second.y}, {first.z, second.w}, {second.x, first.y}, {second.z, first.w}};
  float c[2][4][4] = {};
  for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
    for (int i = 0; i < kMmaUnroll; ++i) {
#pragma unroll
      for (int m = 0; m < 2; ++m) {
#pragma unroll
        for (int n = 0; n < 4; ++n) ptx::mma_m16n8k16<T>(c[m][n], a[m], b[n][0], b[n][1]);
      }
    }
  }
  float sum = 0.0F;
#pragma unroll
  for (const auto& row : c) {
#pragma unroll
    for (const auto& block : row) sum += block[0] + block[1] + block[2] + block[3];
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

using Loop = void (*)(float*, const uint4*, int);

Loop wgmma_loop_of(const std::string& type) {
  if (type == "bf16") return wgmma_loop<ptx::WgmmaType::bf16>;
  if (type == "fp16") return wgmma_loop<ptx::WgmmaType::fp16>;
  if (type == "tf32") return wgmma_loop<ptx::WgmmaType::tf32>;
  return wgmma_loop<ptx::WgmmaType::e4m3>;
}

// The random inputs of a type, and room for what the loops write.
struct Operands {
  Operands(DType dtype, int sm_count, cudaStream_t stream)
      : random(kRandomBytes),
        sums(static_cast<std::size_t>(sm_count) * kMmaThreads * sizeof(float)) {
    fill_random(dtype, random.get(), kRandomBytes / size_bytes(dtype), 5, stream);
  }
  DeviceBuffer random;
  DeviceBuffer sums;
};

}  // namespace

std::vector<TensorLoop> tensor_loops(int sm, int sm_count, cudaStream_t stream) {
  constexpr double kTargetOps = 2.5e12;  // of a run: a few milliseconds
  std::vector<TensorLoop> loops;
  const auto grid = static_cast<unsigned>(sm_count);
  if (sm == 90) {
    for (const auto& [type, dtype] : {std::pair<const char*, DType>{"bf16", DType::bf16},
                                      {"fp16", DType::fp16},
                                      {"tf32", DType::fp32},
                                      {"e4m3", DType::e4m3}}) {
      const Loop loop = wgmma_loop_of(type);
      cudaFuncAttributes attributes{};
      // A build for other architectures alone has no code for this card, or an empty body, which
      // holds no accumulators.
      if (cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(loop)) != cudaSuccess ||
          attributes.numRegs < 128) {
        (void)cudaGetLastError();
        break;
      }
      ROOFLASH_CUDA(cudaFuncSetAttribute(reinterpret_cast<const void*>(loop),
                                         cudaFuncAttributeMaxDynamicSharedMemorySize, kWgmmaSmem));
      const auto operands = std::make_shared<Operands>(dtype, sm_count, stream);
      const double ops = wgmma_ops(size_bytes(dtype)) * kWarpgroups * sm_count;
      const int iterations = static_cast<int>(kTargetOps / ops);
      loops.push_back({type, true, ops * iterations, [=] {
                         loop<<<grid, 128 * kWarpgroups, kWgmmaSmem, stream>>>(
                             operands->sums.get<float>(), operands->random.get<uint4>(),
                             iterations);
                         ROOFLASH_CUDA_LAUNCHED();
                       }});
    }
  }
  for (const auto& [type, dtype, loop] :
       {std::tuple<const char*, DType, Loop>{"bf16", DType::bf16, mma_loop<__nv_bfloat16>},
        {"fp16", DType::fp16, mma_loop<__half>}}) {
    const auto operands = std::make_shared<Operands>(dtype, sm_count, stream);
    const double ops =
        2.0 * 16 * 8 * 16 * 8 * kMmaUnroll * (kMmaThreads / 32) * static_cast<double>(sm_count);
    const int iterations = static_cast<int>(0.5 * kTargetOps / ops);
    loops.push_back({type, false, ops * iterations, [=] {
                       loop<<<grid, kMmaThreads, 0, stream>>>(
                           operands->sums.get<float>(), operands->random.get<uint4>(), iterations);
                       ROOFLASH_CUDA_LAUNCHED();
                     }});
  }
  return loops;
}

}  // namespace rooflash
