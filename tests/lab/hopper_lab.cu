// Tiles and softmaxes of the Hopper pipeline, in families or not, for hopper_lab.py to check and to
// time beside one another: to try one is a line in the table below.
#include <exception>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include "common/hopper/combine.cuh"
#include "common/hopper/forward.cuh"
#include "common/hopper/running_maximum.cuh"
#include "common/launch.hpp"
#include "rf/softmax.cuh"

namespace rooflash {
namespace {

struct Entry {
  const char* name;
  hopper::Config config;
  DType dtype;
  const void* kernel;
  const void* combine;  // with `split`
};

std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

template <class T, class Tile, class Softmax>
__global__ void __launch_bounds__(Tile::kConfig.threads(), 1)
    lab_fwd(const __grid_constant__ hopper::Arguments args) {
  hopper::forward<T, Tile::kConfig, Softmax>(args);
}

template <class T>
__global__ void __launch_bounds__(32 * hopper::kCombineWarps)
    lab_combine(const __grid_constant__ hopper::Arguments args) {
  hopper::combine<T>(args);
}

template <DType kDType, class Tile, class Softmax>
struct Entered {
  explicit Entered(const char* name) {
    entries().push_back({name, Tile::kConfig, kDType,
                         reinterpret_cast<const void*>(lab_fwd<Element<kDType>, Tile, Softmax>),
                         reinterpret_cast<const void*>(lab_combine<Element<kDType>>)});
  }
};

using Maximum = hopper::RunningMaximum;
template <DType kDType>
using Lazy = rf::Softmax<Element<kDType>>;

// name, dtype, softmax, then head dim, warpgroups, keys, blocks a stage, stages, early release, Q
// in registers, keys split, tiles in pairs
#define LAB(name, dtype, softmax, ...)                    \
  struct Tile_##name {                                    \
    static constexpr hopper::Config kConfig{__VA_ARGS__}; \
  };                                                      \
  const Entered<DType::dtype, Tile_##name, softmax> name(#name)

LAB(d64_4x128_maximum, bf16, Maximum, 64, 4, 64, 2, 4, false, false);
LAB(d64_4x128_lazy, bf16, Lazy<DType::bf16>, 64, 4, 64, 2, 4, false, false);
LAB(d64_3x128_lazy_q, bf16, Lazy<DType::bf16>, 64, 3, 64, 2, 4, false, true);
LAB(d64_2x128_lazy_q, bf16, Lazy<DType::bf16>, 64, 2, 128, 1, 4, false, true);
LAB(d128_3x128_maximum, bf16, Maximum, 128, 3, 64, 2, 2, false, false);
LAB(d128_3x64_maximum, bf16, Maximum, 128, 3, 64, 1, 4, false, false);
LAB(d128_2x128_maximum_q, bf16, Maximum, 128, 2, 128, 1, 2, false, true);
LAB(d128_3x64_lazy, bf16, Lazy<DType::bf16>, 128, 3, 64, 1, 4, false, false);
LAB(d128_2x96_lazy_q, bf16, Lazy<DType::bf16>, 128, 2, 96, 1, 2, false, true);
LAB(d128_2x128_lazy_q, bf16, Lazy<DType::bf16>, 128, 2, 64, 2, 2, false, true);
LAB(d128_3x64_lazy_fp16, fp16, Lazy<DType::fp16>, 128, 3, 64, 1, 4, false, false);
LAB(d256_2x64_maximum, bf16, Maximum, 256, 2, 64, 1, 2, true, false);
LAB(d64_4x128_maximum_split, bf16, Maximum, 64, 4, 64, 2, 4, false, false, true);
LAB(d128_3x128_maximum_split, bf16, Maximum, 128, 3, 64, 2, 2, false, false, true);
LAB(d128_3x64_lazy_split, bf16, Lazy<DType::bf16>, 128, 3, 64, 1, 4, false, false, true);
LAB(d256_2x64_maximum_split, bf16, Maximum, 256, 2, 64, 1, 2, true, false, true);
LAB(d64_4x128_lazy_pair, bf16, Lazy<DType::bf16>, 64, 4, 64, 2, 4, false, false, false, true);
LAB(d128_3x64_lazy_pair, bf16, Lazy<DType::bf16>, 128, 3, 64, 1, 4, false, false, false, true);
LAB(d128_3x64_maximum_pair, bf16, Maximum, 128, 3, 64, 1, 4, false, false, false, true);
LAB(d256_2x64_maximum_pair, bf16, Maximum, 256, 2, 64, 1, 2, true, false, false, true);
#undef LAB

Mask mask_of(int kind, int top_left, int left, int right) {
  constexpr MaskKind kKinds[] = {MaskKind::none, MaskKind::causal, MaskKind::window};
  return {kKinds[kind], top_left != 0 ? Align::top_left : Align::bottom_right, left, right};
}

}  // namespace
}  // namespace rooflash

extern "C" {

int lab_count() {
  return static_cast<int>(rooflash::entries().size());
}
const char* lab_name(int i) {
  return rooflash::entries()[static_cast<std::size_t>(i)].name;
}
int lab_headdim(int i) {
  return rooflash::entries()[static_cast<std::size_t>(i)].config.headdim;
}
int lab_fp16(int i) {
  return rooflash::entries()[static_cast<std::size_t>(i)].dtype == rooflash::DType::fp16 ? 1 : 0;
}

int lab_split(int i) {
  return rooflash::entries()[static_cast<std::size_t>(i)].config.split ? 1 : 0;
}

// A launch on tensors as kernel.hpp has them; nullptr, with the reason on standard error, where it
// cannot be made. `mask`: 0 none, 1 causal, 2 window. `splits`: 0 as many as the schedule asks for.
void* lab_prepare(int i, const void* q, const void* k, const void* v, void* o, float* lse,
                  int batch, int seqlen_q, int seqlen_kv, int heads_q, int heads_kv, int headdim,
                  int headdim_v, int mask, int top_left, int left, int right, int splits) {
  using namespace rooflash;
  try {
    const Entry& entry = entries()[static_cast<std::size_t>(i)];
    Problem p;
    p.dtype = entry.dtype;
    p.batch = batch;
    p.heads_q = heads_q;
    p.heads_kv = heads_kv;
    p.seqlen_q = seqlen_q;
    p.seqlen_kv = seqlen_kv;
    p.headdim = headdim;
    p.headdim_v = headdim_v;
    p.mask = mask_of(mask, top_left, left, right);
    DeviceLimits device;
    cudaDeviceGetAttribute(&device.sm_count, cudaDevAttrMultiProcessorCount, 0);
    const hopper::Config& config = entry.config;
    if (splits == 0) {
      splits = hopper::splits_for(p, config, device.sm_count);
    }
    Tensors t{.q = q, .k = k, .v = v, .o = o, .lse = lse};
    std::shared_ptr<void> parts;
    if (config.split) {
      const auto bytes = static_cast<std::size_t>(hopper::parts_bytes(p, splits));
      check_launch(cudaMalloc(&t.workspace, bytes), "cudaMalloc");
      parts = {t.workspace, [](void* memory) { cudaFree(memory); }};
    }
    Prepared prepared =
        hopper::prepare(entry.kernel, config, p, t, device, {splits, entry.combine});
    prepared.launch = [parts, launch = prepared.launch](CUstream_st* stream) { launch(stream); };
    return new Prepared(std::move(prepared));
  } catch (const std::exception& error) {
    std::cerr << "hopper_lab: " << error.what() << "\n";
    return nullptr;
  }
}

void lab_launch(void* prepared, CUstream_st* stream) {
  static_cast<rooflash::Prepared*>(prepared)->launch(stream);
}

void lab_free(void* prepared) {
  delete static_cast<rooflash::Prepared*>(prepared);
}

}  // extern "C"
