// The fp8 kernel on the emulated machine, beside its algorithm on the CPU.
#include "common/two_level_memory.hpp"
#include "fp8/forward.cuh"
#include "fp8/host.hpp"
#include "kernel_case.hpp"

namespace rooflash::fp8 {
namespace {

constexpr std::uint64_t kSeed = 7;
constexpr std::int64_t kAllRows = 1 << 20;
constexpr std::int64_t kSram = 227 << 10;

template <Config kConfig, class Softmax>
void kernel(void* args) {
  forward<kConfig, Softmax>(*static_cast<const Arguments*>(args));
}

std::vector<unsigned char> on_device(const std::vector<float>& values) {
  std::vector<unsigned char> bytes(values.size());
  std::transform(values.begin(), values.end(), bytes.begin(),
                 [](float value) { return static_cast<unsigned char>(machine::to_e4m3(value)); });
  return bytes;
}

using Edit = std::function<void(HostCase&)>;

template <Config kConfig, class Softmax, class Out = __nv_bfloat16>
void check(const Problem& p, int sm_count, const Edit& edit = {}, double apart = 5e-2) {
  SCOPED_TRACE(case_id("emulated", p) + ", " + std::to_string(sm_count) + " SMs" +
               (edit ? ", edited" : ""));
  ASSERT_EQ(invalid_reason(p), "");
  HostCase c = make_host_case(p, kSeed);
  if (edit) edit(c);
  const auto q = on_device(c.q);
  const auto k = on_device(c.k);
  const auto v = on_device(c.v);
  run_in_all_orders<Out>(p, c, [&](void* o, float* lse) {
    return prepare(reinterpret_cast<const void*>(kernel<kConfig, Softmax>), kConfig, p,
                   {.q = q.data(),
                    .k = k.data(),
                    .v = v.data(),
                    .o = o,
                    .lse = lse,
                    .scales = c.tensors().scales},
                   {.sm = 90, .sm_count = sm_count});
  });
  if (testing::Test::HasFatalFailure()) return;
  const VerifyResult result = verify_on_host(p, c.tensors(), kAllRows, kSeed);
  EXPECT_EQ(result.status, "passed") << result.worst;

  // The algorithm takes lazy references unless the problem says otherwise, whatever the kernel has,
  // and sums up as tensor cores do. Weights against other references are rounded otherwise: that
  // leaves the two `apart`, relative to O.
  HostCase host = c;
  TwoLevelMemory memory(kSram);
  forward(p, host.tensors(), choose_tile(p, kConfig, kSram), kConfig, memory);
  double error = 0;
  double size = 0;
  for (std::size_t i = 0; i < c.o.size(); ++i) {
    const double difference = static_cast<double>(c.o[i]) - host.o[i];
    error += difference * difference;
    size += static_cast<double>(host.o[i]) * host.o[i];
  }
  EXPECT_LE(std::sqrt(error), apart * std::sqrt(size));
  for (std::size_t i = 0; i < c.lse.size(); ++i) {
    if (std::isinf(host.lse[i])) continue;
    EXPECT_NEAR(c.lse[i], host.lse[i], 4e-3 * (1 + std::fabs(host.lse[i])));
  }
}

constexpr Mask kCausal{MaskKind::causal};
constexpr Mask kCausalTopLeft{MaskKind::causal, Align::top_left};
constexpr Mask kWindow{MaskKind::window, Align::bottom_right, 40, 0};
constexpr Mask kWindowTopLeft{MaskKind::window, Align::top_left, 5, 30};

// Scores eight times as large, and first keys, which come last, far above: what weights are taken
// against is outgrown, and e4m3 and fp32 as well.
void outgrow(HostCase& c) {
  for (float& scale : c.q_scale) scale *= 8;
  c.k_scale[0] *= 16;
}

struct Shape {
  std::int64_t batch, seqlen_q, seqlen_kv, heads_q, heads_kv;
  Mask mask = {};
  std::int64_t less = 0;  // off the tile's head dim
  Edit edit = {};
};

Problem problem_of(const Shape& shape, std::int64_t headdim) {
  Problem p;
  p.dtype = DType::e4m3;
  p.batch = shape.batch;
  p.seqlen_q = shape.seqlen_q;
  p.seqlen_kv = shape.seqlen_kv;
  p.heads_q = shape.heads_q;
  p.heads_kv = shape.heads_kv;
  p.headdim = p.headdim_v = headdim - shape.less;
  p.mask = shape.mask;
  return p;
}

template <Config kConfig, class Softmax>
void check_tile() {
  const std::vector<Shape> shapes = {
      {1, 1, 1, 1, 1},
      {1, 77, 131, 2, 1, kCausal, 16},
      {2, 5, 260, 2, 2, kWindowTopLeft},
      {1, 70, 300, 3, 3, {}, 0, outgrow},
      {1, 200, 70, 1, 1, kWindow, 16},
      {1, 130, 230, 1, 1, kCausal, 0, outgrow},
      {1, 6 * kConfig.block_m(), 40, 1, 1, kCausal},
      // Rows that see small V alone, and rows that see V of both sizes.
      {1, 10, 250, 1, 1, kCausalTopLeft, 0,
       [](HostCase& c) {
         c.v_log2 = {-16, 0};
       }},
      {1, 230, 250, 1, 1, kCausalTopLeft, 0,
       [](HostCase& c) {
         c.v_log2 = {-3, 0};
       }},
  };
  int number = 0;
  for (const Shape& shape : shapes) {
    const Problem p = problem_of(shape, kConfig.headdim);
    // Many tiles of a CTA where keys are asked for again after they might have been given back.
    check<kConfig, Softmax>(p, shape.edit ? 1 : 1 + number++ % 2, shape.edit);
  }
}

// Head dim, warpgroups, keys a step, slots of Q, stages of K, of V loaded and transposed, blocks
// between promotions: 0 for fast sums.
using Maximum = RunningMaximum<>;

TEST(EmulatedFp8, Headdim64) {
  check_tile<Config{64, 4, 64, 2, 4, 4, 4, 0}, Maximum>();
}
TEST(EmulatedFp8, Headdim64Exact) {
  check_tile<Config{64, 3, 96, 2, 4, 4, 4, 4}, Maximum>();
}
TEST(EmulatedFp8, Headdim128Exact) {
  check_tile<Config{128, 3, 96, 2, 2, 2, 2, 2}, Maximum>();
}
TEST(EmulatedFp8, Headdim256Exact) {
  check_tile<Config{256, 2, 64, 1, 2, 1, 1, 2}, Maximum>();
}

// A tile of the family; O is promoted so often that short rows see it.
template <std::size_t kTile>
void check_family() {
  constexpr Config kConfig = [] {
    Config config = kTiles[kTile].config;
    if (config.promote_blocks > 0) config.promote_blocks = 2;
    return config;
  }();
  check_tile<kConfig, LazyReference>();
}
static_assert(std::size(kTiles) == 8);
TEST(EmulatedFp8, FamilyHeaddim64Fast) {
  check_family<0>();
}
TEST(EmulatedFp8, FamilyHeaddim64Exact) {
  check_family<1>();
}
TEST(EmulatedFp8, FamilyHeaddim128FastBy64Keys) {
  check_family<2>();
}
TEST(EmulatedFp8, FamilyHeaddim128Fast) {
  check_family<3>();
}
TEST(EmulatedFp8, FamilyHeaddim128ExactBy64Keys) {
  check_family<4>();
}
TEST(EmulatedFp8, FamilyHeaddim128Exact) {
  check_family<5>();
}
TEST(EmulatedFp8, FamilyHeaddim256Fast) {
  check_family<6>();
}
TEST(EmulatedFp8, FamilyHeaddim256Exact) {
  check_family<7>();
}

// More scale blocks than lanes hold at a time, each unlike its neighbours.
template <std::size_t kTile>
void check_scales() {
  constexpr Config kConfig = kTiles[kTile].config;
  for (const Mask& mask : {Mask{}, kCausal}) {
    const Problem p = problem_of({1, 70, 3000, 2, 1, mask}, kConfig.headdim);
    check<kConfig, LazyReference>(p, 1, [](HostCase& c) {
      for (std::size_t i = 0; i < c.k_scale.size(); ++i) {
        c.k_scale[i] *= 0.5F + 0.3F * static_cast<float>(i * 7 % 5);
        c.v_log2[i] = -static_cast<float>(i % 3);
      }
      c.q_scale[1] *= 2;
      c.q_scale[2] *= 0.5F;
    });
  }
}
TEST(EmulatedFp8, FollowsTheScalesOfManyKeys) {
  check_scales<1>();
  check_scales<5>();
}

// Every block against the true maximum, which moves each time that it is outgrown.
TEST(EmulatedFp8, KeepsToTheTrueMaximum) {
  constexpr Config kConfig = kTiles[3].config;
  for (const Edit& edit : {Edit(), Edit(outgrow)}) {
    Problem p = problem_of({1, 200, 700, 2, 1, kCausal}, kConfig.headdim);
    p.options["max"] = "true";
    check<kConfig, LazyReference>(p, 1, edit, 1e-2);
  }
}

TEST(EmulatedFp8, GivesFp16) {
  constexpr Config kConfig = kTiles[1].config;
  for (const Mask& mask : {Mask{}, kCausal}) {
    Problem p = problem_of({2, 130, 100, 2, 1, mask, 16}, kConfig.headdim);
    p.options["out"] = "fp16";
    check<kConfig, LazyReference, __half>(p, 2);
  }
}

// As the inputs of a smoothed problem are made and judged.
TEST(EmulatedFp8, TakesSmoothedValues) {
  constexpr Config kConfig = kTiles[2].config;
  for (const Mask& mask : {Mask{}, kCausal}) {
    Problem p = problem_of({2, 130, 100, 4, 2, mask, 16}, kConfig.headdim);
    p.distribution = Distribution::biased;
    p.options["smooth"] = "on";
    check<kConfig, LazyReference>(p, 1);
  }
}

// V's mean is added to O of rows that see a key, and to no others.
TEST(EmulatedFp8, AddsTheMeanOfV) {
  constexpr Config kConfig{64, 4, 64, 2, 4, 4, 4, 0};
  const Problem p = problem_of({2, 100, 70, 4, 2, kCausal, 16}, kConfig.headdim);
  HostCase c = make_host_case(p, kSeed);
  const auto q = on_device(c.q);
  const auto k = on_device(c.k);
  const auto v = on_device(c.v);
  std::vector<float> mean(static_cast<std::size_t>(p.batch * p.heads_kv * p.headdim));
  for (std::size_t i = 0; i < mean.size(); ++i) mean[i] = static_cast<float>(i);
  const auto run = [&](const float* v_mean) {
    Scales scales = c.tensors().scales;
    scales.v_mean = v_mean;
    run_in_all_orders<__nv_bfloat16>(p, c, [&](void* o, float* lse) {
      return prepare(
          reinterpret_cast<const void*>(kernel<kConfig, Maximum>), kConfig, p,
          {.q = q.data(), .k = k.data(), .v = v.data(), .o = o, .lse = lse, .scales = scales},
          {.sm = 90, .sm_count = 1});
    });
    return c.o;
  };
  const std::vector<float> without = run(nullptr);
  const std::vector<float> with = run(mean.data());
  for (std::size_t i = 0; i < with.size(); ++i) {
    const auto channel = static_cast<std::int64_t>(i) % p.headdim;
    const auto head = static_cast<std::int64_t>(i) / p.headdim % p.heads_q;
    const auto row = static_cast<std::int64_t>(i) / (p.headdim * p.heads_q);
    const KeyRange keys = visible_keys(p, row % p.seqlen_q);
    const std::int64_t head_kv = row / p.seqlen_q * p.heads_kv + head / 2;
    const float added =
        keys.begin < keys.end ? mean[static_cast<std::size_t>(head_kv * p.headdim + channel)] : 0;
    const float expected = without[i] + added;
    // Both are rounded to bf16.
    ASSERT_NEAR(with[i], expected, 0x1p-8F * (std::fabs(expected) + std::fabs(without[i]))) << i;
  }
}

}  // namespace
}  // namespace rooflash::fp8
