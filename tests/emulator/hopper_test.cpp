// fa3 and rf, and variants of their pipeline that are so far in the lab, on the emulated machine.
#include "common/hopper/forward.cuh"
#include "common/hopper/running_maximum.cuh"
#include "fa3/config.hpp"
#include "kernel_case.hpp"
#include "rf/config.hpp"
#include "rf/softmax.cuh"
// Without clusters blocks run one after another, so that what is shared can be static.
#undef __shared__
#define __shared__ static
#include "common/hopper/combine.cuh"

namespace rooflash::hopper {
namespace {

constexpr std::uint64_t kSeed = 11;
constexpr std::int64_t kAllRows = 1 << 20;

template <class T, Config kConfig, class Softmax>
void kernel(void* args) {
  forward<T, kConfig, Softmax>(*static_cast<const Arguments*>(args));
}
template <class T>
void combine_kernel(void* args) {
  combine<T>(*static_cast<const Arguments*>(args));
}

template <class T>
std::vector<T> on_device(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

// Scores eight times as large, and a first key, which comes last, far above: what weights are
// taken against is outgrown.
void outgrow(const Problem& p, HostCase& c) {
  for (float& value : c.q) value *= 8;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    float* const key = c.k.data() + b * p.seqlen_kv * p.heads_kv * p.headdim;
    for (std::int64_t i = 0; i < p.heads_kv * p.headdim; ++i) key[i] *= 16;
  }
}

template <class T, Config kConfig, class Softmax>
void check(const Problem& p, int sm_count, int splits, bool outgrown) {
  SCOPED_TRACE(case_id("emulated", p) + ", " + std::to_string(sm_count) + " SMs, " +
               std::to_string(splits) + " parts" + (outgrown ? ", outgrown" : ""));
  ASSERT_EQ(invalid_reason(p), "");
  HostCase c = make_host_case(p, kSeed);
  if (outgrown) outgrow(p, c);
  const std::vector<T> q = on_device<T>(c.q);
  const std::vector<T> k = on_device<T>(c.k);
  const std::vector<T> v = on_device<T>(c.v);
  std::vector<std::byte> workspace(
      static_cast<std::size_t>(kConfig.split ? parts_bytes(p, splits) : 0));
  run_in_all_orders<T>(p, c, [&](void* o, float* lse) {
    std::fill(workspace.begin(), workspace.end(), std::byte{0xFF});  // NaN
    const Tensors t{.q = q.data(),
                    .k = k.data(),
                    .v = v.data(),
                    .o = o,
                    .lse = lse,
                    .workspace = workspace.data()};
    const DeviceLimits device{.sm = 90, .sm_count = sm_count};
    return prepare(reinterpret_cast<const void*>(kernel<T, kConfig, Softmax>), kConfig, p, t,
                   device, {splits, reinterpret_cast<const void*>(combine_kernel<T>)});
  });
  if (testing::Test::HasFatalFailure()) return;
  const VerifyResult result = verify_on_host(p, c.tensors(), kAllRows, kSeed);
  EXPECT_EQ(result.status, "passed") << result.worst;
}

constexpr Mask kCausal{MaskKind::causal};
constexpr Mask kCausalTopLeft{MaskKind::causal, Align::top_left};
constexpr Mask kWindow{MaskKind::window, Align::bottom_right, 40, 0};
constexpr Mask kWindowTopLeft{MaskKind::window, Align::top_left, 5, 30};

struct Shape {
  std::int64_t batch, seqlen_q, seqlen_kv, heads_q, heads_kv;
  Mask mask = {};
  // Off the tile's head dim, of Q and K and of V.
  std::int64_t less = 0, less_v = 0;
  bool outgrown = false;
};

template <class T, Config kConfig, class Softmax>
void check_shapes(const std::vector<Shape>& shapes) {
  int number = 0;
  for (const Shape& shape : shapes) {
    Problem p;
    p.dtype = std::is_same_v<T, __half> ? DType::fp16 : DType::bf16;
    p.batch = shape.batch;
    p.seqlen_q = shape.seqlen_q;
    p.seqlen_kv = shape.seqlen_kv;
    p.heads_q = shape.heads_q;
    p.heads_kv = shape.heads_kv;
    p.headdim = kConfig.headdim - shape.less;
    p.headdim_v = kConfig.headdim - shape.less_v;
    p.mask = shape.mask;
    // Many tiles of a CTA where keys are asked for again after they might have been given back.
    const int sm_count = kConfig.ctas() * (shape.outgrown ? 1 : 1 + number++ % 2);
    if (kConfig.split) {
      // With 5 each warp that combines has a part, with 37 one has more than a round of them.
      for (const int splits : {1, p.seqlen_q == 1 ? 37 : 5}) {
        check<T, kConfig, Softmax>(p, sm_count, splits, shape.outgrown);
      }
    } else {
      check<T, kConfig, Softmax>(p, sm_count, 1, shape.outgrown);
    }
  }
}

// Every branch that a tile has; more than that where products are small.
template <class T, Config kConfig, class Softmax>
void check_tile() {
  constexpr bool kSmall = kConfig.headdim <= 64;
  std::vector<Shape> shapes = {
      {1, 1, 1, 1, 1},
      {1, 77, 131, 2, 1, kCausal, 8, 24},
      {2, 5, 260, 2, 2, kWindowTopLeft, 0, 8},
      {1, 130, 300, 3, 3, {}, 0, 0, true},
      {1, 200, 70, 1, 1, kWindow, 8},
      // Tiles with no keys, more of them than there are notes.
      {1, 6 * kConfig.block_m(), 40, 1, 1, kCausal},
  };
  if (kSmall) {
    shapes.insert(shapes.end(), {{1, 77, 77, 2, 2, kCausalTopLeft},
                                 {1, 130, 200, 1, 1, kCausal, 0, 0, true},
                                 {1, 190, 257, 4, 2},
                                 {1, 64, 300, 4, 4, {}, 24, 0, true}});
  }
  if (kConfig.pair) {
    // An odd number of tiles, pairs of which see some keys that one of the two does not.
    const std::int64_t rows = 3 * kConfig.block_m() - 7;
    shapes.insert(shapes.end(), {{1, rows, rows + 9, 2, 1, kCausal},
                                 {2, rows, rows - 90, 1, 1, kWindowTopLeft},
                                 {1, kConfig.block_m(), 70, 3, 3, kCausalTopLeft}});
  }
  check_shapes<T, kConfig, Softmax>(shapes);
}

template <std::size_t kTile>
constexpr Config kFa3 = fa3::kTiles[kTile].config;
template <std::size_t kTile>
constexpr Config kRf = rf::kTiles[kTile].config;
template <class T>
using Lazy = rf::Softmax<T>;

static_assert(std::size(fa3::kTiles) == 6 && std::size(rf::kTiles) == 6);

TEST(EmulatedFa3, Headdim64) {
  check_tile<__nv_bfloat16, kFa3<0>, RunningMaximum>();
}
TEST(EmulatedFa3, Headdim64InFp16) {
  check_tile<__half, kFa3<0>, RunningMaximum>();
}
TEST(EmulatedFa3, Headdim96) {
  check_tile<__nv_bfloat16, kFa3<1>, RunningMaximum>();
}
TEST(EmulatedFa3, Headdim128) {
  check_tile<__nv_bfloat16, kFa3<2>, RunningMaximum>();
}
TEST(EmulatedFa3, Headdim192) {
  check_tile<__nv_bfloat16, kFa3<3>, RunningMaximum>();
}
TEST(EmulatedFa3, Headdim256InPairs) {
  static_assert(kFa3<4>.pair);
  check_tile<__nv_bfloat16, kFa3<4>, RunningMaximum>();
}
TEST(EmulatedFa3, Headdim256) {
  check_tile<__nv_bfloat16, kFa3<5>, RunningMaximum>();
}
TEST(EmulatedRf, Headdim64) {
  check_tile<__nv_bfloat16, kRf<0>, Lazy<__nv_bfloat16>>();
}
TEST(EmulatedRf, Headdim96) {
  check_tile<__nv_bfloat16, kRf<1>, Lazy<__nv_bfloat16>>();
}
TEST(EmulatedRf, Headdim128InFp16) {
  check_tile<__half, kRf<2>, Lazy<__half>>();
}
TEST(EmulatedRf, Headdim128) {
  check_tile<__nv_bfloat16, kRf<2>, Lazy<__nv_bfloat16>>();
}
// The others are fa3's, and so is their softmax.
static_assert(!rf::is_lazy(kRf<3>) && !rf::is_lazy(kRf<4>) && !rf::is_lazy(kRf<5>));

// ---- split keys, packed heads

const std::vector<Shape> kShortQueries = {
    {1, 1, 1, 1, 1},
    {2, 5, 300, 2, 1, kWindow, 8, 24},
    {1, 70, 290, 1, 1, {}, 0, 0, true},
    {1, 130, 70, 1, 1, kCausal},
    {1, 33, 200, 1, 1, kCausalTopLeft},
    {1, 1, 300, 64, 1},
    {2, 5, 200, 8, 2, kCausal, 8, 24},
    {1, 40, 25, 16, 2, kWindowTopLeft},
    {1, 33, 129, 4, 2, kWindow, 0, 0, true},
    // Groups that are no power of two, or too large a one: packed in part, or not.
    {1, 20, 140, 6, 2, kCausal},
    {1, 9, 140, 12, 1, kWindow},
    {1, 1, 130, 65, 1},
};

TEST(EmulatedSplit, Headdim64) {
  check_shapes<__nv_bfloat16, kSplitTiles[0].config, RunningMaximum>(kShortQueries);
}
TEST(EmulatedSplit, Headdim64InFp16) {
  check_shapes<__half, kSplitTiles[0].config, RunningMaximum>(kShortQueries);
}
TEST(EmulatedSplit, Headdim96) {
  check_shapes<__nv_bfloat16, kSplitTiles[1].config, RunningMaximum>(
      {{1, 9, 290, 8, 1, kCausal, 0, 56}, {1, 40, 90, 3, 1, kWindowTopLeft}});
}
TEST(EmulatedSplit, Headdim128) {
  check_shapes<__nv_bfloat16, kSplitTiles[2].config, RunningMaximum>(
      {{1, 9, 290, 8, 1, kCausal, 0, 56}, {1, 40, 90, 3, 1, kWindowTopLeft}});
}
TEST(EmulatedSplit, Headdim192) {
  check_shapes<__nv_bfloat16, kSplitTiles[3].config, RunningMaximum>(
      {{1, 9, 150, 8, 1, kCausal, 24}});
}
TEST(EmulatedSplit, Headdim256) {
  check_shapes<__nv_bfloat16, kSplitTiles[4].config, RunningMaximum>(
      {{1, 9, 150, 8, 1, kCausal, 0, 56}, {1, 40, 90, 16, 2, kWindowTopLeft, 24}});
}

// ---- in the lab: head dim, warpgroups, keys, steps a stage, stages, early release, Q in
// registers, split keys, tiles in pairs

TEST(EmulatedLab, QueriesInRegisters) {
  check_tile<__nv_bfloat16, Config{64, 3, 64, 1, 4, false, true}, Lazy<__nv_bfloat16>>();
}
TEST(EmulatedLab, LazySoftmaxOnSplitKeys) {
  check_shapes<__half, Config{64, 2, 64, 1, 4, false, false, true}, Lazy<__half>>(kShortQueries);
  check_shapes<__nv_bfloat16, Config{64, 2, 64, 1, 4, false, false, true}, Lazy<__nv_bfloat16>>(
      kShortQueries);
}
TEST(EmulatedLab, Headdim64InPairs) {
  check_tile<__nv_bfloat16, Config{64, 4, 64, 2, 4, false, false, false, true},
             Lazy<__nv_bfloat16>>();
}
TEST(EmulatedLab, Headdim128InPairs) {
  constexpr Config kConfig{128, 3, 64, 1, 4, false, false, false, true};
  check_tile<__nv_bfloat16, kConfig, Lazy<__nv_bfloat16>>();
  check_tile<__half, kConfig, RunningMaximum>();
}

}  // namespace
}  // namespace rooflash::hopper
