// The fp8 kernel's algorithm on the CPU in the modes that change what it sums up, weighs against
// and gives.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "common/two_level_memory.hpp"
#include "core/fp8.hpp"
#include "kernel.hpp"
#include "verify/reference.hpp"

namespace rooflash::fp8 {

extern const Kernel kKernel;

namespace {

constexpr std::int64_t kSram = 227L << 10U;
constexpr std::uint64_t kSeed = 7;

Problem problem(std::int64_t seqlen_q, std::int64_t seqlen_kv, Distribution distribution) {
  Problem p;
  p.dtype = DType::e4m3;
  p.seqlen_q = seqlen_q;
  p.seqlen_kv = seqlen_kv;
  p.headdim = p.headdim_v = 64;
  p.distribution = distribution;
  return p;
}

struct Result {
  HostCase host;
  VerifyResult verdict;
};

Result run(const Problem& p) {
  EXPECT_EQ(kKernel.limits(p), "");
  Result result{make_host_case(p, kSeed), {}};
  const Tile tile = kKernel.tile(p, kSram);
  TwoLevelMemory memory(kSram);
  kKernel.host(p, result.host.tensors(), tile, memory);
  const Traffic closed = kKernel.traffic(p, tile);
  EXPECT_EQ(memory.read_bytes(), closed.read_bytes()) << case_id("fp8", p);
  EXPECT_EQ(memory.write_bytes(), closed.write_bytes()) << case_id("fp8", p);
  const HostTensors real = result.host.real_tensors();
  result.verdict = verify_on_host(p, result.host.tensors(), 1 << 20, kSeed, &real);
  return result;
}

// Tensor cores lose of sums over many keys of a V whose mean is not 0. Smoothed, it is 0.
TEST(Fp8Modes, SmoothedValuesNeedNoExactSums) {
  Problem p = problem(4, 16384, Distribution::biased);
  p.options["accum"] = "fast";
  EXPECT_EQ(run(p).verdict.status, "failed");
  p.options["smooth"] = "on";
  const VerifyResult smoothed = run(p).verdict;
  EXPECT_EQ(smoothed.status, "passed") << smoothed.worst;
  EXPECT_LT(*smoothed.rel_err, 3e-3);
  EXPECT_LT(*smoothed.unquantized_rel_err, 3e-3);
}

TEST(Fp8Modes, SmoothingIsRightInEveryShape) {
  for (const Mask& mask : {Mask{}, Mask{MaskKind::causal}, Mask{MaskKind::causal, Align::top_left},
                           Mask{MaskKind::window, Align::bottom_right, 20, 3}}) {
    for (const char* scale : {"", "head", "tensor"}) {
      Problem p = problem(130, 70, Distribution::biased);  // with rows that see no key
      p.batch = 2;
      p.heads_q = 4;
      p.heads_kv = 2;
      p.headdim = p.headdim_v = 48;
      p.mask = mask;
      p.options["smooth"] = "on";
      if (*scale != '\0') p.options["scale"] = scale;
      const VerifyResult result = run(p).verdict;
      EXPECT_EQ(result.status, "passed") << case_id("fp8", p) << ": " << result.worst;
    }
  }
}

// Where few weights make up a row, what is lost is the rounding of its largest one.
TEST(Fp8Modes, TheTrueMaximumIsNotRounded) {
  for (const Distribution distribution : {Distribution::outlier, Distribution::peaky}) {
    Problem p = problem(192, 1024, distribution);
    const VerifyResult lazy = run(p).verdict;
    p.options["max"] = "true";
    const VerifyResult exact = run(p).verdict;
    EXPECT_EQ(exact.status, "passed") << exact.worst;
    EXPECT_LT(*exact.rms_err, 0.6 * *lazy.rms_err) << case_id("fp8", p);
  }
}

TEST(Fp8Modes, GivesFp16) {
  Problem p = problem(100, 300, Distribution::normal);
  const VerifyResult bf16 = run(p).verdict;
  p.options["out"] = "fp16";
  const Result fp16 = run(p);
  EXPECT_EQ(fp16.verdict.status, "passed") << fp16.verdict.worst;
  EXPECT_LT(*fp16.verdict.tolerance_max, *bf16.tolerance_max);
  const auto& o = fp16.host.o;
  const auto all_are = [&](DType dtype) {
    return std::all_of(o.begin(), o.end(), [&](float x) { return x == round_to(dtype, x); });
  };
  EXPECT_TRUE(all_are(DType::fp16));
  EXPECT_FALSE(all_are(DType::bf16));
}

TEST(Fp8Modes, RefusesToGiveE4m3) {
  Problem p = problem(100, 300, Distribution::normal);
  p.options["out"] = "e4m3";
  EXPECT_EQ(kKernel.limits(p), "fp8 gives O in bf16 or fp16");
}

// An O in e4m3 is in units of V's scale, and held to roundings of that type.
TEST(Fp8Modes, OInE4m3IsJudgedInUnitsOfVsScale) {
  Problem p = problem(40, 300, Distribution::normal);
  p.heads_q = 4;
  p.heads_kv = 2;
  p.options = {{"accum", "fast"}, {"out", "e4m3"}, {"scale", "head"}};
  HostCase host = make_host_case(p, kSeed);
  ASSERT_NE(host.v_scale[0], host.v_scale[1]);
  const auto judged = [&](float off) {
    for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
      for (std::int64_t head = 0; head < p.heads_q; ++head) {
        const ReferenceRow reference = reference_row(p, host.tensors(), {0, head, row});
        const float unit = host.v_scale[static_cast<std::size_t>(head / 2)] * off;
        for (std::int64_t c = 0; c < p.headdim_v; ++c) {
          host.o[static_cast<std::size_t>((row * p.heads_q + head) * p.headdim_v + c)] = round_to(
              DType::e4m3, static_cast<float>(reference.o[static_cast<std::size_t>(c)]) / unit);
        }
        host.lse[static_cast<std::size_t>(head * p.seqlen_q + row)] =
            static_cast<float>(reference.lse);
      }
    }
    return verify_on_host(p, host.tensors(), 1 << 20, kSeed);
  };
  const VerifyResult right = judged(1);
  EXPECT_EQ(right.status, "passed") << right.worst;
  EXPECT_GT(*right.rel_err, 1e-2);  // e4m3 has four bits
  EXPECT_LT(*right.rel_err, 4e-2);
  EXPECT_EQ(judged(1.2F).status, "failed");
}

}  // namespace
}  // namespace rooflash::fp8
