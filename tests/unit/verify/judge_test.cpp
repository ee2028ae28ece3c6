#include "verify/judge.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>
#include <tuple>

#include "verify/reference.hpp"

namespace rooflash {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

// The emulation's output of every row, changed by `edit`, judged.
VerifyResult judged(const Problem& p, const std::function<void(HostCase&)>& edit) {
  HostCase c = make_host_case(p, 5);
  for (const SampledRow& row : sample_rows(p, 1 << 20, 0).rows) {
    const EmulatedRow e = emulated_row(p, c.tensors(), row);
    std::copy(
        e.o.begin(), e.o.end(),
        c.o.begin() + ((row.batch * p.seqlen_q + row.row) * p.heads_q + row.head) * p.headdim_v);
    c.lse[static_cast<std::size_t>((row.batch * p.heads_q + row.head) * p.seqlen_q + row.row)] =
        e.lse;
  }
  edit(c);
  return verify_on_host(p, c.tensors(), 1 << 20, 0);
}

Problem problem(DType dtype = DType::bf16) {
  Problem p;
  p.dtype = dtype;
  p.heads_q = 2;
  p.heads_kv = 1;
  p.seqlen_q = p.seqlen_kv = 96;
  p.mask.kind = MaskKind::causal;
  return p;
}

TEST(Judge, TheEmulationItselfPasses) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::e4m3}) {
    const VerifyResult r = judged(problem(dtype), [](HostCase&) {});
    EXPECT_EQ(r.status, "passed") << r.worst;
    EXPECT_EQ(r.rows_checked, "all");
    EXPECT_GT(*r.max_abs_err, 0);
    EXPECT_LE(*r.max_abs_err, *r.tolerance_max);
  }
}

TEST(Judge, OnePerCentScaleErrorFails) {
  for (const DType dtype : {DType::fp16, DType::bf16}) {
    for (const std::int64_t seqlen : {32, 96, 300}) {
      Problem p = problem(dtype);
      p.mask = {};
      p.seqlen_q = p.seqlen_kv = seqlen;
      const VerifyResult r = judged(p, [dtype](HostCase& c) {
        for (float& value : c.o) value = round_to(dtype, value * 1.01F);
      });
      EXPECT_EQ(r.status, "failed") << to_string(dtype) << " " << seqlen;
    }
  }
}

TEST(Judge, NonFiniteOutputFails) {
  for (const float bad : {kNan, kInf, -kInf}) {
    const VerifyResult r = judged(problem(), [bad](HostCase& c) { c.o[200] = bad; });
    EXPECT_EQ(r.status, "failed");
    EXPECT_NE(r.worst.find("head 1 row 1 col 8"), std::string::npos) << r.worst;
    EXPECT_FALSE(r.max_abs_err || r.rms_err || r.rel_err || r.tolerance_max || r.tolerance_rms);
    EXPECT_EQ(judged(problem(), [bad](HostCase& c) { c.lse[3] = bad; }).status, "failed");
  }
}

TEST(Judge, GivesNoErrorWhereNothingFiniteWasCompared) {
  Problem p = problem();
  const VerifyResult all_nan =
      judged(p, [](HostCase& c) { std::fill(c.o.begin(), c.o.end(), kNan); });
  EXPECT_EQ(all_nan.status, "failed");
  EXPECT_FALSE(all_nan.max_abs_err || all_nan.tolerance_max);
  Judge elsewhere(p);
  elsewhere.add_row({}, std::vector<float>(64, 1.0F), std::vector<double>(64, 1.0),
                    std::vector<float>(64, 1.0F), 0.0F, 0.0, 0.0F);
  const RowSample one{{{0, 0, 0}}, false, "one"};
  EXPECT_TRUE(elsewhere.result(one).max_abs_err);
  elsewhere.add_nonfinite(3, "all of O");
  EXPECT_FALSE(elsewhere.result(one).max_abs_err);
  EXPECT_FALSE(Judge(p).result(one).max_abs_err);
}

TEST(Judge, OneWrongElementIsNamed) {
  const VerifyResult r = judged(problem(), [](HostCase& c) { c.o[64] += 1.0F; });
  EXPECT_EQ(r.status, "failed");
  EXPECT_NE(r.worst.find("batch 0 head 1 row 0 col 0"), std::string::npos) << r.worst;
}

TEST(Judge, WrongLseFails) {
  const VerifyResult r = judged(problem(), [](HostCase& c) { c.lse[7] += 0.1F; });
  EXPECT_EQ(r.status, "failed");
  EXPECT_NE(r.worst.find("LSE"), std::string::npos) << r.worst;
  EXPECT_NE(r.worst.find("row 7"), std::string::npos) << r.worst;
}

TEST(Judge, EmptyRowsAreExact) {
  Problem p = problem();
  p.seqlen_kv = 64;  // 32 rows see nothing
  EXPECT_EQ(judged(p, [](HostCase&) {}).status, "passed");
  EXPECT_EQ(judged(p, [](HostCase& c) { c.o[0] = 1e-6F; }).status, "failed");
  EXPECT_EQ(judged(p, [](HostCase& c) { c.lse[0] = -1e30F; }).status, "failed");
  EXPECT_EQ(judged(p, [](HostCase& c) { c.lse[0] = kInf; }).status, "failed");
}

TEST(Judge, MissingRowsFail) {
  const Problem p = problem();
  Judge judge(p);
  EXPECT_EQ(judge.result(sample_rows(p, 1000, 0)).status, "failed");
  EXPECT_EQ(judge.result(RowSample{}).status, "failed");
}

TEST(Judge, NanReferenceOrEmulationCannotPass) {
  Problem p = problem();
  const RowSample sample{{{0, 0, 0}}, false, "one"};
  const std::vector<float> o(64, 1.0F);
  const std::vector<double> reference(64, 1.0);
  const std::vector<float> nan(64, kNan);
  Judge emulation(p), lse(p);
  emulation.add_row({}, o, reference, nan, 0.0F, 0.0, 0.0F);
  EXPECT_EQ(emulation.result(sample).status, "failed");
  lse.add_row({}, o, reference, o, 0.0F, static_cast<double>(kNan), 0.0F);
  EXPECT_EQ(lse.result(sample).status, "failed");
}

TEST(Sampling, SmallShapesGiveEveryRow) {
  Problem p = problem();
  p.batch = 3;
  const RowSample s = sample_rows(p, 3 * 2 * 96, 1);
  EXPECT_TRUE(s.all);
  EXPECT_EQ(s.rows.size(), 3U * 2U * 96U);
}

TEST(Sampling, BigShapesGiveEdgesEndsAndRandomRows) {
  Problem p;
  p.batch = 5;
  p.heads_q = 7;
  p.heads_kv = 1;
  p.seqlen_q = 1000;
  const RowSample s = sample_rows(p, 192, 1);
  EXPECT_FALSE(s.all);
  EXPECT_EQ(s.rows.size(), 192U);
  EXPECT_EQ(s.description, "192 of 35000: first, last, tile edges, random");
  std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t>> rows;
  for (const SampledRow& r : s.rows) {
    EXPECT_TRUE(r.batch >= 0 && r.batch < 5 && r.head >= 0 && r.head < 7);
    EXPECT_TRUE(r.row >= 0 && r.row < 1000);
    rows.emplace(r.batch, r.head, r.row);
  }
  EXPECT_EQ(rows.size(), 192U);
  for (const std::int64_t row : {0, 63, 64, 127, 128, 959, 960, 999}) {
    EXPECT_TRUE(rows.contains({0, 0, row})) << row;
    EXPECT_TRUE(rows.contains({4, 6, row})) << row;
  }
  const RowSample again = sample_rows(p, 192, 1), other = sample_rows(p, 192, 2);
  const auto same = [&](const RowSample& t) {
    return std::equal(s.rows.begin(), s.rows.end(), t.rows.begin(), t.rows.end(),
                      [](const SampledRow& a, const SampledRow& b) {
                        return a.batch == b.batch && a.head == b.head && a.row == b.row;
                      });
  };
  EXPECT_TRUE(same(again));
  EXPECT_FALSE(same(other));
}

TEST(Sampling, FewRowsOfAManyHeadedShape) {
  Problem p;
  p.batch = 64;
  p.heads_q = 64;
  p.heads_kv = 64;
  EXPECT_LE(sample_rows(p, 20, 1).rows.size(), 20U);
  EXPECT_GE(sample_rows(p, 20, 1).rows.size(), 4U);
}

}  // namespace
}  // namespace rooflash
