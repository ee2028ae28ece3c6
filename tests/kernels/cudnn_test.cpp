// The vendor's library through the worker: right, or refused in its own words; never wrong, never a
// fault.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "harness.hpp"
#include "record/check.hpp"
#include "registry.hpp"
#include "support/unexplained.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

class Cudnn : public testing::Test {
 protected:
  void SetUp() override {
    const std::string missing = find_kernel("cudnn")->library().missing;
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
  Row verified(const Problem& p) {
    CaseRequest request;
    request.kernel = "cudnn";
    request.problem = p;
    request.seed = kSeed;
    request.options.verify = "only";
    return backend_->run(request, [](std::string_view) {});
  }

  // Whether cuDNN takes the problem: then it must be right, else say why not.
  bool takes(const Problem& p) {
    const Row row = verified(p);
    EXPECT_FALSE(backend_->lost());
    if (row.status == Status::ok) return true;
    EXPECT_EQ(row.status, Status::unsupported) << row.reason;
    EXPECT_TRUE(row.reason.starts_with("cuDNN ")) << row.reason;
    return false;
  }

  std::unique_ptr<Backend> backend_ = make_cuda_backend(0);
};

TEST_F(Cudnn, RunsWhatThePeerGridAsks) {
  const Environment environment = backend_->environment();
  EXPECT_FALSE(environment.cudnn.empty());
  EXPECT_TRUE(environment.cudnn_hash);
  for (const std::int64_t headdim : {64, 128, 256}) {
    for (const MaskKind mask : {MaskKind::none, MaskKind::causal}) {
      Problem p;
      p.heads_q = p.heads_kv = 4;
      p.seqlen_q = p.seqlen_kv = 1024;
      p.headdim = p.headdim_v = headdim;
      p.mask.kind = mask;
      SCOPED_TRACE(case_id("cudnn", p));
      const Row row = verified(p);
      ASSERT_EQ(row.status, Status::ok) << row.reason;
      EXPECT_NO_THROW(check_row(row, "row"));
      for (const std::string& path : unexplained_nulls(row)) {
        ADD_FAILURE() << path << " has no reason";
      }
      EXPECT_EQ(row.verify.status, "passed");
      EXPECT_EQ(row.provider, "cudnn");
      EXPECT_GT(row.resources.plan_ms.value_or(0), 0);
      // Among others: a launch may clear its workspace first.
      EXPECT_TRUE(std::any_of(
          row.kernels_run.begin(), row.kernels_run.end(),
          [](const std::string& name) { return name.find("cudnn") != std::string::npos; }));
    }
  }
}

TEST_F(Cudnn, IsRightOrRefuses) {
  const Mask masks[] = {{},
                        {MaskKind::causal},
                        {MaskKind::causal, Align::top_left},
                        {MaskKind::window, Align::bottom_right, 100, 0},
                        {MaskKind::window, Align::top_left, 0, 30},
                        {MaskKind::window, Align::bottom_right, kUnbounded, 30}};
  const std::pair<std::int64_t, std::int64_t> lengths[] = {{1, 1},     {1, 300},   {113, 203},
                                                           {300, 113}, {257, 257}, {64, 1}};
  const std::pair<std::int64_t, std::int64_t> headdims[] = {{8, 8},     {72, 72},   {128, 128},
                                                            {192, 128}, {256, 256}, {100, 100}};
  std::size_t turn = 0;  // plans take long to build: two masks and one type of each shape
  int ok = 0;
  for (const auto& [headdim, headdim_v] : headdims) {
    for (const auto& [seqlen_q, seqlen_kv] : lengths) {
      ++turn;
      for (const Mask& mask : {masks[turn % 6], masks[(turn + 3) % 6]}) {
        Problem p;
        p.dtype = turn % 2 == 0 ? DType::bf16 : DType::fp16;
        p.batch = 2;
        p.heads_q = 6;
        p.heads_kv = 2;
        p.seqlen_q = seqlen_q;
        p.seqlen_kv = seqlen_kv;
        p.headdim = headdim;
        p.headdim_v = headdim_v;
        p.mask = mask;
        SCOPED_TRACE(case_id("cudnn", p));
        if (takes(p)) ++ok;
      }
    }
  }
  EXPECT_GT(ok, 20);
}

// What it takes of e4m3: one scale a tensor, O in e4m3.
TEST_F(Cudnn, E4m3IsRightOrRefuses) {
  int ok = 0;
  for (const std::int64_t headdim : {64, 128, 256}) {
    for (const auto& [seqlen_q, seqlen_kv] :
         {std::pair<std::int64_t, std::int64_t>{1024, 1024}, {257, 257}, {113, 203}, {300, 113}}) {
      for (const MaskKind mask : {MaskKind::none, MaskKind::causal}) {
        Problem p;
        p.dtype = DType::e4m3;
        p.batch = 2;
        p.heads_q = 6;
        p.heads_kv = 2;
        p.seqlen_q = seqlen_q;
        p.seqlen_kv = seqlen_kv;
        p.headdim = p.headdim_v = headdim;
        p.mask.kind = mask;
        p.options = {{"accum", "fast"}, {"out", "e4m3"}, {"scale", "tensor"}};
        SCOPED_TRACE(case_id("cudnn", p));
        if (takes(p)) ++ok;
        p.options.erase("out");
        EXPECT_EQ(verified(p).reason, "of e4m3 problems cudnn takes those with --fp8-out e4m3");
      }
    }
  }
  // Equal lengths, and unequal ones without a mask.
  EXPECT_GE(ok, 3 * (2 * 2 + 2));
}

}  // namespace
}  // namespace rooflash
