// fp8 beyond what every forward kernel is tested on: both ways to sum up, scales and rotation, and
// sums over many keys whose values have a mean.
#include <string>
#include <utility>

#include "device_case.hpp"
#include "harness.hpp"
#include "registry.hpp"
#include "verify/gpu_verify.hpp"

namespace rooflash {
namespace {

class Fp8 : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel_of(128).runs_here()) GTEST_SKIP() << "fp8 is for sm_90";
  }
  static KernelVariant kernel_of(std::int64_t headdim) {
    const Kernel* const kernel = find_kernel("fp8");
    for (const Variant& variant : kernel->variants) {
      if (variant.headdim >= headdim) return {kernel, &variant};
    }
    return {kernel, nullptr};
  }
  static Problem problem(std::int64_t headdim, bool fast) {
    Problem p;
    p.dtype = DType::e4m3;
    p.headdim = p.headdim_v = headdim;
    if (fast) p.options["accum"] = "fast";
    return p;
  }
};

TEST_F(Fp8, SmallFastLengthsAndMasks) {
  for (const std::int64_t headdim : {48, 64, 128, 208, 256}) {
    const KernelVariant kernel = kernel_of(headdim);
    std::size_t turn = 0;
    for (const Shape& shape :
         {Shape{48, 1, 1, 1, 1}, Shape{2, 4, 2, 113, 203}, Shape{1, 6, 3, 799, 3},
          Shape{2, 8, 1, 65, 129}, Shape{1, 2, 2, 257, 385}, Shape{16, 4, 4, 1, 500}}) {
      Problem p = with_shape(problem(headdim, true), shape);
      for (const Mask& mask : kernel.masks(p, turn++)) {
        p.mask = mask;
        expect_reference(kernel, p);
      }
    }
  }
}

// Onto different remains in the outputs, on few SMs, for the same bits.
TEST_F(Fp8, SmallRaceFastRepeats) {
  constexpr int kSmCount = 2;
  for (const std::int64_t headdim : {64, 128, 256}) {
    Problem p = problem(headdim, true);
    p.heads_q = 3;
    p.seqlen_q = 400;
    p.seqlen_kv = 330;
    p.distribution = Distribution::peaky;
    p.mask.kind = MaskKind::causal;
    SCOPED_TRACE(case_id("fp8", p));
    DeviceCase device(find_kernel("fp8"), p, kSmCount);
    device.make_inputs(kSeed);
    device.run(0xFF);
    const std::vector<std::byte> first = device.output_bytes();
    device.run(0x7F);
    EXPECT_TRUE(first == device.output_bytes()) << "two runs differ";
  }
}

TEST_F(Fp8, SmallScalesAndRotation) {
  for (const char* scale : {"", "head", "tensor"}) {
    for (const char* hadamard : {"", "on"}) {
      for (const std::int64_t headdim : {64, 128, 256}) {
        Problem p = problem(headdim, false);
        p.batch = 2;
        p.heads_q = 4;
        p.heads_kv = 2;
        p.seqlen_q = 130;
        p.seqlen_kv = 450;
        p.distribution = Distribution::outlier;
        if (*scale != '\0') p.options["scale"] = scale;
        if (*hadamard != '\0') p.options["hadamard"] = hadamard;
        expect_reference(kernel_of(headdim), p);
      }
    }
  }
}

TEST_F(Fp8, SmallMaximaMeansAndOutputs) {
  for (const std::int64_t headdim : {48, 64, 128, 256}) {
    for (const char* accum : {"", "fast"}) {
      for (const char* max : {"", "true"}) {
        for (const char* smooth : {"", "on"}) {
          for (const char* out : {"", "fp16"}) {
            Problem p = problem(headdim, false);
            p.batch = 2;
            p.heads_q = 4;
            p.heads_kv = 2;
            p.seqlen_q = 500;
            p.seqlen_kv = 450;  // with rows that see no key
            p.mask.kind = MaskKind::causal;
            p.distribution = *smooth != '\0' ? Distribution::biased : Distribution::peaky;
            const std::pair<const char*, const char*> options[] = {
                {"accum", accum}, {"max", max}, {"smooth", smooth}, {"out", out}};
            for (const auto& [name, value] : options) {
              if (*value != '\0') p.options[name] = value;
            }
            expect_reference(kernel_of(headdim), p);
          }
        }
      }
    }
  }
}

// What the judge's rule, which is for any reference, does not see: the largest weight is exact.
TEST_F(Fp8, TheTrueMaximumIsNotRounded) {
  for (const std::int64_t headdim : {64, 128, 256}) {
    Problem p = problem(headdim, false);
    p.heads_q = 4;
    p.seqlen_q = p.seqlen_kv = 1024;
    p.distribution = Distribution::peaky;
    const auto rms_error = [&] {
      DeviceCase device(find_kernel("fp8"), p);
      device.make_inputs(kSeed);
      device.run();
      return verify_on_gpu(p, kSeed, device.tensors(), gpu().stream).rms_err.value();
    };
    const double lazy = rms_error();
    p.options["max"] = "true";
    SCOPED_TRACE(case_id("fp8", p));
    EXPECT_LT(rms_error(), 0.7 * lazy);
  }
}

// Without a mean there is nothing that sums of tensor cores lose in one direction.
TEST_F(Fp8, FastSumsOfSmoothedValuesAreRight) {
  for (const std::int64_t headdim : {64, 128, 256}) {
    Problem p = problem(headdim, true);
    p.heads_q = 2;
    p.seqlen_q = 500;
    p.seqlen_kv = 16384;
    p.distribution = Distribution::biased;
    p.options["smooth"] = "on";
    SCOPED_TRACE(case_id("fp8", p));
    DeviceCase device(find_kernel("fp8"), p);
    device.make_inputs(kSeed);
    device.run();
    const VerifyResult result = verify_on_gpu(p, kSeed, device.tensors(), gpu().stream);
    EXPECT_EQ(result.status, "passed") << result.worst;
    EXPECT_LE(result.rel_err.value_or(1), 4e-3);
  }
}

// Rows that see small values of V alone, and rows that see those of both sizes.
TEST_F(Fp8, SmallBlocksOfSmallValues) {
  for (const std::int64_t headdim : {64, 128, 256}) {
    Problem p = problem(headdim, false);
    p.seqlen_q = 300;
    p.seqlen_kv = 400;
    p.mask = {MaskKind::causal, Align::top_left};
    HostCase host = make_host_case(p, kSeed);
    host.v_log2 = {-16, -3, 0};
    DeviceCase device(find_kernel("fp8"), p);
    device.upload_inputs(host);
    device.run();
    device.download_outputs(host);
    EXPECT_TRUE(passed(verify_on_host(p, host.tensors(), o_elements(p), kSeed)));
  }
}

// What the tensor cores lose of sums over many keys: exact sums have it back, fast ones fail.
TEST_F(Fp8, SumsOverManyKeysOfBiasedValues) {
  for (const std::int64_t headdim : {64, 128, 256}) {
    for (const bool fast : {false, true}) {
      for (const MaskKind mask : {MaskKind::none, MaskKind::causal}) {
        Problem p = problem(headdim, fast);
        p.heads_q = 2;
        p.seqlen_q = 500;
        p.seqlen_kv = 16384;
        p.distribution = Distribution::biased;
        p.mask.kind = mask;
        SCOPED_TRACE(case_id("fp8", p));
        DeviceCase device(find_kernel("fp8"), p);
        device.make_inputs(kSeed);
        device.run();
        const VerifyResult result = verify_on_gpu(p, kSeed, device.tensors(), gpu().stream);
        EXPECT_EQ(result.status, fast ? "failed" : "passed") << result.worst;
        if (fast) {
          EXPECT_GT(result.rel_err.value_or(0), 0.05);
        } else {
          EXPECT_LE(result.rel_err.value_or(1), 8e-3);
        }
      }
    }
  }
}

}  // namespace
}  // namespace rooflash
