#include <gtest/gtest.h>

#include <cmath>

#include "common/two_level_memory.hpp"
#include "core/error.hpp"
#include "kernel.hpp"
#include "model/gpu_spec.hpp"
#include "record/check.hpp"
#include "registry.hpp"
#include "support/unexplained.hpp"
#include "verify/reference.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

const PhaseSink kNoPhases = [](std::string_view) {};

CaseRequest request(const std::string& kernel, std::int64_t seqlen = 128) {
  CaseRequest r;
  r.kernel = kernel;
  r.seed = 1;
  r.problem.heads_q = r.problem.heads_kv = 2;
  r.problem.seqlen_q = r.problem.seqlen_kv = seqlen;
  return r;
}

Row run(const CaseRequest& r, const std::string& gpu = "h200") {
  return make_sim_backend(gpu)->run(r, kNoPhases);
}

TEST(SimBackend, SmallShapeIsVerifiedAtFullSize) {
  std::vector<std::string> phases;
  const Row row = make_sim_backend("h200")->run(
      request("fa2"), [&](std::string_view phase) { phases.emplace_back(phase); });
  EXPECT_EQ(phases, (std::vector<std::string>{"setup", "verify", "timed"}));
  EXPECT_EQ(row.status, Status::ok) << row.reason;
  EXPECT_TRUE(row.simulated);
  EXPECT_EQ(row.device, "sim:h200");
  EXPECT_EQ(row.verify.status, "passed");
  EXPECT_EQ(row.verify.shape, "");
  EXPECT_EQ(row.case_id, "fa2/fwd/bf16/b1.h2.kv2/q128.k128/d64/full");
  ASSERT_TRUE(row.time_us);
  EXPECT_EQ(row.time_us->timer, "model");
  EXPECT_EQ(row.time_us->samples, std::vector<double>{row.time_us->median});
  EXPECT_EQ(row.time_us->ci95_low, row.time_us->ci95_high);
  EXPECT_EQ(row.time_us->median, *row.model.predicted_time_us);
  EXPECT_NEAR(*row.derived.tflops, row.model.flops / row.time_us->median / 1e6, 1e-9);
  EXPECT_EQ(row.counters.status, "unavailable");
  EXPECT_FALSE(row.derived.hbm_gbps);
  EXPECT_TRUE(row.missing.contains("power_w"));
  EXPECT_NE(row.repro.find("--device sim:h200"), std::string::npos);
}

TEST(SimBackend, ClosedKernelsAreUnsupported) {
  const Row row = run(request("cudnn"));
  EXPECT_EQ(row.status, Status::unsupported);
  EXPECT_EQ(row.reason, "the kernels of cudnn are closed: there is no model of them");
  EXPECT_EQ(row.provider, "cudnn");
  EXPECT_FALSE(row.time_us);
}

// Families made for one generation of GPUs.
TEST(SimBackend, OtherGpusThanAFamilysAreUnsupported) {
  for (const char* kernel : {"fa3", "rf"}) {
    EXPECT_EQ(run(request(kernel)).status, Status::ok);
    for (const auto& [gpu, sm] : {std::pair{"a100", "80"}, {"rtx4090", "89"}, {"b200", "100"}}) {
      const Row row = run(request(kernel), gpu);
      EXPECT_EQ(row.status, Status::unsupported);
      EXPECT_EQ(row.reason,
                std::string(kernel) + " has no variant for sm_" + sm + "; compiled: sm_90-90");
      EXPECT_FALSE(row.time_us);
    }
  }
}

// On a real GPU a closed kernel's row is ok, and its predictions are null with the reason.
TEST(StartRow, ClosedKernelsHaveNoPrediction) {
  DeviceInfo device;
  device.device = "cuda:0";
  device.name = "NVIDIA H200";
  Row row = start_row(request("cudnn"), device);
  EXPECT_FALSE(row.model.predicted_time_us || row.model.predicted_hbm_bytes ||
               row.model.predicted_sm_l2_bytes);
  EXPECT_TRUE(start_row(request("fa2"), device).model.predicted_time_us);
  row.status = Status::ok;
  explain_missing(row);
  for (const char* field : {"sm_l2_bytes", "hbm_bytes", "time_us"}) {
    EXPECT_EQ(row.missing[std::string("model.predicted_") + field],
              "the kernels of cudnn are closed: there is no model of them");
  }
  EXPECT_EQ(row.missing["resources.registers"], "cudnn does not tell");
}

TEST(SimBackend, LargeShapeIsVerifiedReduced) {
  CaseRequest r = request("naive", 8192);
  r.problem.mask.kind = MaskKind::causal;
  const Row row = run(r);
  EXPECT_EQ(row.status, Status::ok);
  EXPECT_EQ(row.verify.status, "reduced");
  EXPECT_EQ(row.verify.shape, "b1.h1.kv1/q257.k257/d64/causal");
  EXPECT_EQ(*row.memory.workspace_bytes, 2LL * 8192 * 8192 * 2);
}

TEST(SimBackend, FlashReadsLessThanNaiveAndIsPredictedFaster) {
  const Row naive = run(request("naive", 8192));
  const Row fa2 = run(request("fa2", 8192));
  EXPECT_LT(*fa2.model.predicted_hbm_bytes, *naive.model.predicted_hbm_bytes / 10);
  EXPECT_LT(*fa2.model.predicted_time_us, *naive.model.predicted_time_us);
}

TEST(SimBackend, LessSramMovesMoreBytes) {
  CaseRequest r = request("fa2", 4096);
  const Row large = run(r);
  r.options.sram_bytes = 8 << 10U;
  const Row small = run(r);
  EXPECT_GT(*small.model.predicted_sm_l2_bytes, 3 * *large.model.predicted_sm_l2_bytes);
  r.options.sram_bytes = 64;
  const Row none = run(r);
  EXPECT_EQ(none.status, Status::failed);
  EXPECT_NE(none.reason.find("--sram"), std::string::npos) << none.reason;
  EXPECT_FALSE(none.time_us);
}

TEST(SimBackend, TooLargeIsOom) {
  CaseRequest r = request("naive", 262144);
  r.problem.heads_q = r.problem.heads_kv = 16;
  const Row row = run(r);
  EXPECT_EQ(row.status, Status::oom);
  EXPECT_EQ(*row.memory.needed_bytes, *row.memory.peak_bytes);
  EXPECT_EQ(*row.memory.free_bytes, 150754820096);
  EXPECT_GT(*row.memory.needed_bytes, *row.memory.free_bytes);
  EXPECT_EQ(run(request("fa2", 262144)).status, Status::ok);
}

TEST(SimBackend, UnsupportedSaysWhy) {
  CaseRequest r = request("fa2");
  r.problem.dtype = DType::e4m3;
  EXPECT_EQ(run(r).status, Status::unsupported);
  EXPECT_NE(run(r).reason.find("e4m3"), std::string::npos);
  const Row old = run(request("fa2"), "v100");
  EXPECT_EQ(old.status, Status::unsupported);
  EXPECT_NE(old.reason.find("sm_70"), std::string::npos) << old.reason;
  EXPECT_FALSE(old.model.predicted_time_us);
}

TEST(SimBackend, UnknownKernelAndUnknownGpu) {
  EXPECT_EQ(run(request("fa9")).status, Status::failed);
  EXPECT_THROW(make_sim_backend("h2000"), UsageError);
}

TEST(SimBackend, BadKernelsAreWrong) {
  for (const char* kernel : {"test_wrong", "test_nan", "test_noop"}) {
    for (const std::int64_t seqlen : {128, 8192}) {
      const Row row = run(request(kernel, seqlen));
      EXPECT_EQ(row.status, Status::wrong) << kernel;
      EXPECT_FALSE(row.time_us);
      EXPECT_NE(row.reason, "");
    }
  }
  EXPECT_EQ(run(request("test_slow")).status, Status::ok);
}

TEST(SimBackend, VerifyOnlyAndOff) {
  CaseRequest r = request("fa2");
  r.options.verify = "only";
  const Row only = run(r);
  EXPECT_EQ(only.status, Status::ok);
  EXPECT_FALSE(only.time_us);
  EXPECT_TRUE(only.missing.contains("time_us"));
  r.options.verify = "off";
  EXPECT_EQ(run(r).verify.status, "skipped");
}

TEST(SimBackend, GivesEveryEmptyFigureAReason) {
  CaseRequest r = request("naive");
  for (const char* verify : {"on", "off", "only"}) {
    for (const DType dtype : {DType::bf16, DType::fp32}) {
      r.options.verify = verify;
      r.problem.dtype = dtype;
      const Row row = run(r);
      ASSERT_EQ(row.status, Status::ok) << row.reason;
      EXPECT_NO_THROW(check_row(row, "row"));
      EXPECT_EQ(unexplained_nulls(row), std::vector<std::string>());
    }
  }
}

TEST(SimBackend, OnlyTheCalibratedModelIsUnflagged) {
  EXPECT_TRUE(run(request("fa2")).flags.empty());
  EXPECT_EQ(run(request("fa2"), "a100").flags, std::vector<std::string>{"model_unvalidated"});
}

TEST(FinishRow, RatesFromTimeAndCounters) {
  Row row;
  row.model.flops = 4e9;
  row.time_us = TimeUs{10, 10, 10, 10, 1, {10}, "cold", "burst", "event", "ci"};
  row.counters.hbm_read_bytes = 15e6;
  row.counters.hbm_write_bytes = 5e6;
  row.counters.tensor_ops = 5e9;
  Ceilings roofs;
  roofs.hbm_copy_gbps = 4000;
  roofs.gemm_tflops["bf16"] = 700;
  finish_row(row, roofs);
  EXPECT_DOUBLE_EQ(*row.derived.tflops, 400);
  EXPECT_DOUBLE_EQ(*row.derived.hardware_tflops, 500);
  EXPECT_DOUBLE_EQ(*row.derived.hbm_gbps, 2000);
  EXPECT_DOUBLE_EQ(*row.derived.intensity_flop_per_byte, 200);
  EXPECT_DOUBLE_EQ(*row.derived.roof_pct, 100 * 400.0 / 700);
}

TEST(FlagImplausible, FasterThanTheCard) {
  const GpuSpec& h200 = require_gpu("h200");
  const double per_clock = h200.tensor_ops_per_clock_per_sm.at("bf16") * 132;
  Row row;
  row.problem.dtype = DType::bf16;
  row.time_us = TimeUs{};
  row.cycles_median = 1e6;
  row.model.flops = 0.99e6 * per_clock;
  row.derived.hbm_gbps = 0.99 * h200.hbm_gbps;
  flag_implausible(row, h200, 132);
  EXPECT_TRUE(row.flags.empty());
  row.derived.hbm_gbps = 1.01 * h200.hbm_gbps;
  flag_implausible(row, h200, 132);
  row.derived.hbm_gbps = 0;
  row.model.flops = 1.01e6 * per_clock;
  flag_implausible(row, h200, 132);
  EXPECT_EQ(row.flags, (std::vector<std::string>{"implausible", "implausible"}));
}

TEST(FinishRow, AShareOfTheRoofComesOnceTheRoofIsKnown) {
  Row row;
  row.model.flops = 4e9;
  row.time_us = TimeUs{10, 10, 10, 10, 1, {10}, "cold", "burst", "event", "ci"};
  row.counters.hbm_read_bytes = 15e6;
  row.counters.hbm_write_bytes = 5e6;
  finish_row(row, {});
  EXPECT_FALSE(row.derived.roof_pct);
  EXPECT_TRUE(row.missing.contains("derived.roof_pct"));
  Ceilings roofs;
  roofs.hbm_copy_gbps = 4000;
  roofs.gemm_tflops["bf16"] = 800;
  finish_row(row, roofs);
  EXPECT_DOUBLE_EQ(*row.derived.roof_pct, 50);
  EXPECT_FALSE(row.missing.contains("derived.roof_pct"));
}

// Every family's host algorithm against the reference: masks, GQA, odd sizes, distributions, SRAM.
class HostAlgorithm : public testing::TestWithParam<const char*> {};

TEST_P(HostAlgorithm, IsRight) {
  const Kernel& kernel = *find_kernel(GetParam());
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causal, Align::top_left},
                        {MaskKind::window, Align::bottom_right, 20, 5}};
  int ran = 0;
  for (const Mask& mask : masks) {
    for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32}) {
      for (const Distribution distribution :
           {Distribution::normal, Distribution::outlier, Distribution::negative,
            Distribution::constant, Distribution::biased, Distribution::biased_less,
            Distribution::peaky}) {
        for (const auto& [sq, sk] : {std::pair{70, 70}, {40, 150}, {90, 40}, {1, 77}}) {
          Problem p;
          p.dtype = dtype;
          p.mask = mask;
          p.distribution = distribution;
          p.heads_q = 2;
          p.heads_kv = 1;
          p.seqlen_q = sq;
          p.seqlen_kv = sk;
          p.headdim = 72;
          p.headdim_v = 64;
          if (find_variant(kernel, p, 0, nullptr) == nullptr) continue;
          for (const std::int64_t sram : {9 << 10, 200 << 10}) {
            HostCase c = make_host_case(p, 11);
            TwoLevelMemory memory(sram);
            kernel.host(p, c.tensors(), kernel.tile(p, sram), memory);
            const VerifyResult result = verify_on_host(p, c.tensors(), 96, 1);
            ASSERT_EQ(result.status, "passed")
                << case_id(kernel.name, p) << " sram " << sram << ": " << result.worst;
            ++ran;
          }
        }
      }
    }
  }
  EXPECT_GE(ran, 100);
}

INSTANTIATE_TEST_SUITE_P(Families, HostAlgorithm, testing::Values("naive", "fa2"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace rooflash
