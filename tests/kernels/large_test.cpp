// Every forward kernel at sizes that fill the GPU, and on every input distribution.
#include <optional>
#include <string>

#include "device_case.hpp"
#include "harness.hpp"
#include "verify/gpu_verify.hpp"

namespace rooflash {
namespace {

// Judged on sampled rows by the GPU's reference, then run once more for the same bits.
void expect_reference_on_gpu(const KernelVariant& kernel, const Problem& p,
                             std::optional<int> sm_count = {}) {
  SCOPED_TRACE(case_id(kernel.kernel->name, p));
  DeviceCase device(kernel.kernel, p, sm_count);
  device.make_inputs(kSeed);
  device.run(0xFF);
  EXPECT_TRUE(passed(verify_on_gpu(p, kSeed, device.tensors(), gpu().stream)));
  const std::vector<std::byte> first = device.output_bytes();
  device.run(0x7F);
  EXPECT_TRUE(first == device.output_bytes()) << "two runs differ";
}

TEST_P(Kernels, LongSequences) {
  const KernelVariant& kernel = GetParam();
  std::size_t turn = 0;
  for (const Shape& shape :
       {Shape{1, 8, 8, 4096, 4096}, Shape{2, 8, 2, 1000, 4096}, Shape{2, 8, 1, 4096, 1000},
        Shape{2, 12, 4, 1000, 2100}, Shape{3, 8, 8, 513, 2047}, Shape{1, 6, 6, 1023, 1024},
        Shape{2, 6, 1, 1023, 1024}, Shape{1, 6, 2, 4224, 4224}}) {
    Problem p = with_shape(kernel.problem(), shape);
    for (const Mask& mask : kernel.masks(p, turn++)) {
      p.mask = mask;
      expect_reference_on_gpu(kernel, p);
    }
  }
}

// Tiles and keys enough for CTAs in pairs, where the kernel has these, on few SMs.
TEST_P(Kernels, SmallRacePairsOfTiles) {
  constexpr int kSmCount = 6;
  const KernelVariant& kernel = GetParam();
  Problem p = with_shape(kernel.problem(), {1, 66, 33, 256, 1300});
  const auto choice = kernel.kernel->choice;
  const auto in_pairs = [&] {
    return choice != nullptr && choice(p).find("pairs") != std::string::npos;
  };
  if (!in_pairs()) GTEST_SKIP() << "no pairs of CTAs";
  for (const Mask& mask :
       {Mask{}, Mask{MaskKind::causal}, Mask{MaskKind::window, Align::bottom_right, 1100, 0}}) {
    p.mask = mask;
    EXPECT_TRUE(in_pairs());
    expect_reference_on_gpu(kernel, p, kSmCount);
  }
}

// As in decoding: one query a head, and all heads share their keys.
TEST_P(Kernels, OneQueryOfManyHeads) {
  Problem p = GetParam().problem();
  p.heads_q = 32;
  p.seqlen_kv = 4096;
  expect_reference_on_gpu(GetParam(), p);
}

// More (batch item, head) pairs than the 65,535 of a grid's y and z.
TEST_P(Kernels, ManyHeads) {
  const KernelVariant& kernel = GetParam();
  for (const Shape& shape : {Shape{4100, 16, 4, 3, 5}, Shape{70000, 1, 1, 2, 2}}) {
    Problem p = with_shape(kernel.problem(), shape);
    for (const Mask& mask : kernel.masks(p, 0)) {
      p.mask = mask;
      expect_reference_on_gpu(kernel, p);
    }
  }
}

TEST_P(Kernels, Distributions) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.batch = 2;
  p.heads_q = 8;
  p.heads_kv = 2;
  p.seqlen_kv = 160;
  for (const Distribution distribution :
       {Distribution::normal, Distribution::outlier, Distribution::large, Distribution::negative,
        Distribution::constant, Distribution::biased, Distribution::biased_less,
        Distribution::peaky}) {
    p.distribution = distribution;
    // Large scores leave one weight of 1 in nearly every row. The few rows with two near-equal ones
    // hold all of the error, and too few of these make its maximum a matter of luck in fp32.
    p.seqlen_q = distribution == Distribution::large ? 1024 : 256;
    expect_reference(kernel, p);
  }
}

// Over many key blocks, rows of more than one warpgroup.
TEST_P(Kernels, DistributionsUnderMasks) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.seqlen_q = 200;
  p.seqlen_kv = 700;
  for (const Distribution distribution :
       {Distribution::peaky, Distribution::large, Distribution::negative, Distribution::outlier}) {
    p.distribution = distribution;
    p.heads_q = 2;
    if (distribution == Distribution::large) {
      // As above, some rows must have two near-equal scores. Rounded to bf16 many are equal; in
      // fp16 it takes more rows, and in fp32 more than are cheap here.
      if (p.dtype == DType::fp32) continue;
      if (p.dtype == DType::fp16) p.heads_q = 12;
    }
    for (const Mask& mask : kernel.masks(p, 6)) {
      p.mask = mask;
      expect_reference(kernel, p);
    }
  }
}

}  // namespace
}  // namespace rooflash
