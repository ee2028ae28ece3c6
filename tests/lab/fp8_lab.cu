// Tiles and softmaxes of the fp8 kernels, for fp8_lab.py to check and to time beside one another:
// to try one is a line in the table below.
#include <exception>
#include <iostream>
#include <vector>

#include "fp8/forward.cuh"

namespace rooflash {
namespace {

struct Entry {
  const char* name;
  fp8::Config config;
  const void* kernel;
};

std::vector<Entry>& entries() {
  static std::vector<Entry> all;
  return all;
}

template <class Tile, class Softmax>
__global__ void __launch_bounds__(Tile::kConfig.threads(), 1)
    fp8_lab_fwd(const __grid_constant__ fp8::Arguments args) {
  fp8::forward<Tile::kConfig, Softmax>(args);
}

template <class Tile, class Softmax>
struct Entered {
  explicit Entered(const char* name) {
    entries().push_back(
        {name, Tile::kConfig, reinterpret_cast<const void*>(fp8_lab_fwd<Tile, Softmax>)});
  }
};

using Maximum = fp8::RunningMaximum<>;
using Lazy = fp8::LazyReference;

// name, softmax, then head dim, warpgroups, keys, slots of Q, stages of K, of V loaded and
// transposed, blocks between promotions
#define LAB(name, softmax, ...)                        \
  struct Tile_##name {                                 \
    static constexpr fp8::Config kConfig{__VA_ARGS__}; \
  };                                                   \
  const Entered<Tile_##name, softmax> name(#name)

LAB(d64_4x64_exact, Maximum, 64, 4, 64, 2, 4, 4, 4, 12);
LAB(d64_4x64_fast_lazy, Lazy, 64, 4, 64, 2, 4, 4, 4, 0);
LAB(d64_4x64_exact_lazy, Lazy, 64, 4, 64, 2, 4, 4, 4, 12);
LAB(d64_3x96_fast_lazy, Lazy, 64, 3, 96, 2, 4, 4, 4, 0);
LAB(d64_3x96_exact_lazy, Lazy, 64, 3, 96, 2, 4, 4, 4, 8);
LAB(d128_3x96_exact, Maximum, 128, 3, 96, 2, 4, 2, 4, 8);
LAB(d128_3x96_fast_lazy, Lazy, 128, 3, 96, 2, 4, 2, 4, 0);
LAB(d128_3x96_exact_lazy, Lazy, 128, 3, 96, 2, 4, 2, 4, 8);
LAB(d128_3x64_fast_lazy, Lazy, 128, 3, 64, 2, 4, 4, 4, 0);
LAB(d128_3x64_exact_lazy, Lazy, 128, 3, 64, 2, 4, 4, 4, 12);
LAB(d256_2x96_fast_lazy, Lazy, 256, 2, 96, 1, 2, 1, 2, 0);
LAB(d256_2x96_exact_lazy, Lazy, 256, 2, 96, 1, 2, 1, 2, 8);
LAB(d256_2x64_fast_lazy, Lazy, 256, 2, 64, 1, 2, 2, 4, 0);
LAB(d256_2x64_exact_lazy, Lazy, 256, 2, 64, 1, 2, 2, 4, 12);
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
// Whether the variant sums in fp32 over all keys.
int lab_exact(int i) {
  return rooflash::entries()[static_cast<std::size_t>(i)].config.promote_blocks > 0 ? 1 : 0;
}
// Rows of Q, and of K and V, that have a scale in common.
int lab_scale_rows() {
  return rooflash::fp8::kWarpgroupRows;
}
int lab_scale_keys() {
  return rooflash::fp8::kScaleKeys;
}

// A launch on tensors and scales as kernel.hpp has them; nullptr, with the reason on standard
// error, where it cannot be made. `mask`: 0 none, 1 causal, 2 window.
void* lab_prepare(int i, const void* q, const void* k, const void* v, void* o, float* lse,
                  const float* q_scale, const float* k_scale, const float* v_scale,
                  const float* v_log2, const float* v_mean, int batch, int seqlen_q, int seqlen_kv,
                  int heads_q, int heads_kv, int headdim, int mask, int top_left, int left,
                  int right) {
  using namespace rooflash;
  try {
    const Entry& entry = entries()[static_cast<std::size_t>(i)];
    Problem p;
    p.dtype = DType::e4m3;
    p.batch = batch;
    p.heads_q = heads_q;
    p.heads_kv = heads_kv;
    p.seqlen_q = seqlen_q;
    p.seqlen_kv = seqlen_kv;
    p.headdim = headdim;
    p.headdim_v = headdim;
    p.mask = mask_of(mask, top_left, left, right);
    DeviceLimits device;
    cudaDeviceGetAttribute(&device.sm_count, cudaDevAttrMultiProcessorCount, 0);
    return new Prepared(fp8::prepare(entry.kernel, entry.config, p,
                                     {.q = q,
                                      .k = k,
                                      .v = v,
                                      .o = o,
                                      .lse = lse,
                                      .scales = {q_scale, k_scale, v_scale, v_log2, v_mean}},
                                     device));
  } catch (const std::exception& error) {
    std::cerr << "fp8_lab: " << error.what() << "\n";
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
