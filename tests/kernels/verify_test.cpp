// Verification on the GPU against verification on the CPU, and against kernels that are wrong.
#include "verify/gpu_verify.hpp"

#include <algorithm>

#include "device_case.hpp"
#include "harness.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

constexpr DType kDTypes[] = {DType::fp32, DType::fp16, DType::bf16, DType::e4m3};

Problem small_problem(DType dtype) {
  Problem p;
  p.dtype = dtype;
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  p.seqlen_q = 33;
  p.seqlen_kv = 47;
  p.headdim = 40;
  p.headdim_v = 24;
  return p;
}

void expect_same_inputs(const Problem& p) {
  SCOPED_TRACE(case_id("inputs", p));
  const HostCase host = make_host_case(p, kSeed);
  DeviceCase device(nullptr, p);
  device.make_inputs(kSeed);
  EXPECT_TRUE(device.inputs()[0] == encode(p.dtype, host.q)) << "Q";
  EXPECT_TRUE(device.inputs()[1] == encode(p.dtype, host.k)) << "K";
  EXPECT_TRUE(device.inputs()[2] == encode(p.dtype, host.v)) << "V";
  EXPECT_TRUE(device.inputs()[3] == encode(DType::fp32, scales_of(host))) << "scales";
}

TEST(GpuVerify, SmallInputsAreThoseOfTheCpuToTheBit) {
  for (const DType dtype : kDTypes) {
    Problem p = small_problem(dtype);
    for (const Distribution distribution :
         {Distribution::normal, Distribution::outlier, Distribution::large, Distribution::negative,
          Distribution::constant, Distribution::biased, Distribution::biased_less,
          Distribution::peaky}) {
      p.distribution = distribution;
      expect_same_inputs(p);
    }
    p.distribution = Distribution::normal;
    p.batch = p.heads_q = p.heads_kv = 1;
    p.seqlen_kv = 70000;  // row numbers of more than 16 bits
    p.headdim = p.headdim_v = 8;
    expect_same_inputs(p);
  }
}

TEST(GpuVerify, SmallInputsOfE4m3AreThoseOfTheCpuInEveryMode) {
  for (const char* scale : {"", "head", "tensor"}) {
    for (const char* hadamard : {"", "on"}) {
      for (const std::int64_t headdim : {16, 64, 128, 256}) {
        Problem p = small_problem(DType::e4m3);
        p.headdim = headdim;
        p.seqlen_q = 130;
        p.seqlen_kv = 400;
        p.distribution = Distribution::outlier;
        if (*scale != '\0') p.options["scale"] = scale;
        if (*hadamard != '\0') p.options["hadamard"] = hadamard;
        expect_same_inputs(p);
      }
    }
  }
}

TEST(GpuVerify, SmallSmoothedInputsAreThoseOfTheCpu) {
  for (const std::int64_t headdim : {16, 64, 112, 256}) {
    for (const std::int64_t seqlen_kv : {1, 191, 1000}) {
      Problem p = small_problem(DType::e4m3);
      p.headdim = p.headdim_v = headdim;
      p.seqlen_kv = seqlen_kv;
      p.distribution = Distribution::biased;
      p.options["smooth"] = "on";
      expect_same_inputs(p);
    }
  }
}

struct Verdicts {
  VerifyResult cpu, gpu;
};

// An output of ones judged by both. The errors are then those of 1 - reference: every element of
// either fp64 reference enters the rms, its sign included.
Verdicts judge_ones(const Problem& p) {
  HostCase host = make_host_case(p, kSeed);
  std::fill(host.o.begin(), host.o.end(), 1.0F);
  std::fill(host.lse.begin(), host.lse.end(), 0.0F);
  DeviceCase device(nullptr, p);
  device.upload_inputs(host);
  device.upload_outputs(host);
  const HostTensors real = host.real_tensors();
  return {verify_on_host(p, host.tensors(), o_elements(p), kSeed,
                         p.dtype == DType::e4m3 ? &real : nullptr),
          verify_on_gpu(p, kSeed, device.tensors(), gpu().stream)};
}

void expect_twelve_digits(const Problem& p) {
  SCOPED_TRACE(case_id("reference", p));
  const auto [cpu, gpu] = judge_ones(p);
  EXPECT_EQ(gpu.rows_checked, "all");
  EXPECT_NEAR(*gpu.max_abs_err, *cpu.max_abs_err, 1e-12 * *cpu.max_abs_err);
  EXPECT_NEAR(*gpu.rms_err, *cpu.rms_err, 1e-12 * *cpu.rms_err);
  EXPECT_NEAR(*gpu.rel_err, *cpu.rel_err, 1e-12 * *cpu.rel_err);
  ASSERT_EQ(gpu.unquantized_rms_err.has_value(), p.dtype == DType::e4m3);
  if (p.dtype == DType::e4m3) {
    EXPECT_NEAR(*gpu.unquantized_rms_err, *cpu.unquantized_rms_err,
                1e-12 * *cpu.unquantized_rms_err);
  }
  // The tolerances come from the emulations. In fp32 these have no rounding points but those of
  // the sums, whose order differs.
  if (p.dtype == DType::fp32) return;
  EXPECT_NEAR(*gpu.tolerance_rms, *cpu.tolerance_rms, 0.02 * *cpu.tolerance_rms);
}

// The sums run in another order on the GPU, so the references differ in their last bits.
TEST(GpuVerify, SmallReferenceIsThatOfTheCpuToTwelveDigits) {
  struct Shape {
    std::int64_t seqlen_q, seqlen_kv;
    Mask mask;
  };
  const Mask causal{MaskKind::causal};
  for (const DType dtype : kDTypes) {
    for (const Shape& shape : {Shape{33, 47, {}}, Shape{20, 50, causal}, Shape{50, 20, causal},
                               Shape{40, 300, {MaskKind::causal, Align::top_left}},
                               Shape{50, 50, {MaskKind::window, Align::bottom_right, 9, 4}}}) {
      Problem p = small_problem(dtype);
      p.seqlen_q = shape.seqlen_q;
      p.seqlen_kv = shape.seqlen_kv;
      p.mask = shape.mask;
      expect_twelve_digits(p);
    }
  }
}

// What O is of, and in units of.
TEST(GpuVerify, SmallReferenceOfE4m3TakesMeansAndUnits) {
  for (const char* out : {"", "fp16", "e4m3"}) {
    for (const char* smooth : {"", "on"}) {
      if (std::string_view(out) == "e4m3" && *smooth != '\0') continue;
      Problem p = small_problem(DType::e4m3);
      p.seqlen_q = 50;
      p.seqlen_kv = 20;
      p.mask = {MaskKind::causal};
      p.distribution = Distribution::biased;
      if (*out != '\0') p.options["out"] = out;
      if (*smooth != '\0') p.options["smooth"] = smooth;
      expect_twelve_digits(p);
    }
  }
}

// One key, or equal scores of a power of two of keys: every sum is exact, in any order.
TEST(GpuVerify, SmallRaceReferenceIsThatOfTheCpuToTheBitWhereSumsAreExact) {
  for (const DType dtype : kDTypes) {
    Problem one_key = small_problem(dtype);
    one_key.seqlen_q = 5;
    one_key.seqlen_kv = 1;
    Problem equal_scores = one_key;
    equal_scores.seqlen_kv = 64;
    equal_scores.distribution = Distribution::constant;
    for (const Problem& p : {one_key, equal_scores}) {
      SCOPED_TRACE(case_id("reference", p));
      const auto [cpu, gpu] = judge_ones(p);
      EXPECT_EQ(*gpu.max_abs_err, *cpu.max_abs_err);
      EXPECT_EQ(*gpu.rms_err, *cpu.rms_err);
    }
  }
}

// `test_slow` is right: what fails in the others is their one fault.
TEST(GpuVerify, SmallFaultyKernelsFailOnBoth) {
  for (const char* family : {"test_wrong", "test_nan", "test_noop", "test_slow"}) {
    Problem p = small_problem(DType::bf16);
    p.headdim = p.headdim_v = 64;
    p.seqlen_q = p.seqlen_kv = 96;
    SCOPED_TRACE(case_id(family, p));
    HostCase host = make_host_case(p, kSeed);
    DeviceCase device(find_kernel(family), p);
    device.upload_inputs(host);
    device.run();
    device.download_outputs(host);
    const bool right = std::string_view(family) == "test_slow";
    const VerifyResult cpu = verify_on_host(p, host.tensors(), o_elements(p), kSeed);
    const VerifyResult gpu = verify_on_gpu(p, kSeed, device.tensors(), rooflash::gpu().stream);
    EXPECT_EQ(cpu.status, right ? "passed" : "failed") << cpu.worst;
    EXPECT_EQ(gpu.status, right ? "passed" : "failed") << gpu.worst;
  }
}

TEST(Harness, SmallGuardsSeeOneByteOnEitherSide) {
  for (const std::int64_t offset : {-1, 100}) {
    const GuardedBuffer buffer(100);
    buffer.fill(0);
    EXPECT_TRUE(buffer.guards_intact());
    ROOFLASH_CUDA(
        cudaMemsetAsync(static_cast<std::byte*>(buffer.data()) + offset, 0, 1, gpu().stream));
    EXPECT_FALSE(buffer.guards_intact());
  }
}

}  // namespace
}  // namespace rooflash
