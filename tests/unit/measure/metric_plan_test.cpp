// CUPTI's host side plans metrics for any chip on a machine with no GPU: every name must exist, and
// the number of passes is known before a card sees it. Skipped where there is no CUPTI.
#include "measure/metric_plan.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "measure/counter_failure.hpp"
#include "measure/metric_check.hpp"
#include "measure/metrics.hpp"
#include "profile/metric_sets.hpp"

namespace rooflash {
namespace {

std::vector<std::string> names_of(const MetricGroup& group) {
  std::vector<std::string> names;
  for (const Metric& metric : group) names.push_back(metric.name);
  return names;
}

// Why CUPTI cannot be asked here; "" where it can.
std::string no_cupti([[maybe_unused]] const CuptiApi& api) {
#ifdef __SANITIZE_ADDRESS__
  return "CUPTI opens libraries in a way that AddressSanitizer refuses";
#else
  return api.error();
#endif
}

class OnChip : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!no_cupti(api_).empty()) GTEST_SKIP() << no_cupti(api_);
  }
  std::size_t passes(const std::vector<std::string>& names) const {
    try {
      return MetricPlan(api_, GetParam(), names).passes();
    } catch (const CounterFailure& failure) {
      for (const std::string& name : names) {
        if (!has_metric(api_, GetParam(), name)) ADD_FAILURE() << GetParam() << " has no " << name;
      }
      ADD_FAILURE() << failure.status << ": " << failure.reason;
      return 0;
    }
  }
  const CuptiApi api_;
};

TEST_P(OnChip, WhatEachRowCountsTakesOnePassOnHopper) {
  for (const DType dtype : {DType::fp32, DType::fp16, DType::bf16, DType::e4m3}) {
    const std::size_t count = passes(metric_names(GetParam(), dtype)->all());
    EXPECT_GE(count, 1U);
    if (GetParam() == "GH100") {
      EXPECT_EQ(count, 1U) << to_string(dtype);
    }
  }
}

// Passes of each group of the profile sets: those that are set against each other share one.
TEST_P(OnChip, PassesOfTheProfileSets) {
  using Passes = std::map<std::string, std::vector<std::size_t>>;
  const std::map<std::string, Passes> expected{
      {"GH100",
       {{"memory", {1, 2, 1, 1, 3}},
        {"compute", {1, 1, 1, 1}},
        {"stalls", {1, 6}},
        {"smem", {1, 1, 1}}}},
      {"GA100",
       {{"memory", {1, 2, 2, 1, 3}},
        {"compute", {1, 1, 1, 2}},
        {"stalls", {1, 6}},
        {"smem", {1, 1, 1}}}},
      {"GA102",
       {{"memory", {1, 2, 1, 1, 3}},
        {"compute", {1, 1, 1, 2}},
        {"stalls", {1, 6}},
        {"smem", {1, 1, 1}}}},
      {"AD102",
       {{"memory", {1, 2, 1, 1, 3}},
        {"compute", {1, 1, 1, 3}},
        {"stalls", {1, 6}},
        {"smem", {1, 1, 1}}}},
      {"GB100",
       {{"memory", {1, 2, 1, 1, 3}},
        {"compute", {1, 1, 1, 2}},
        {"stalls", {1, 6}},
        {"smem", {1, 1, 1}}}},
      {"GB202",
       {{"memory", {1, 2, 1, 1, 3}},
        {"compute", {1, 2, 1, 3}},
        {"stalls", {1, 6}},
        {"smem", {1, 1, 1}}}},
  };
  const std::vector<MetricSet> sets = metric_sets(GetParam());
  ASSERT_EQ(sets.size(), metric_set_names().size());
  Passes counted;
  for (const MetricSet& set : sets) {
    for (const MetricGroup& group : set.groups) {
      counted[set.name].push_back(passes(names_of(group)));
    }
  }
  const auto known = expected.find(GetParam());
  ASSERT_NE(known, expected.end());
  EXPECT_EQ(counted, known->second);
}

INSTANTIATE_TEST_SUITE_P(Chips, OnChip, testing::ValuesIn(known_chips()));

class RunOnOlderChip : public OnChip {};
TEST_P(RunOnOlderChip, HasTheNamesOfARow) {
  for (const DType dtype : {DType::fp32, DType::fp16}) {
    EXPECT_GE(passes(metric_names(GetParam(), dtype)->all()), 1U);
  }
}
INSTANTIATE_TEST_SUITE_P(Chips, RunOnOlderChip, testing::Values("GV100", "TU102"));

TEST(BaseMetrics, ListsKindsAndRefusesUnknownChips) {
  const CuptiApi api;
  if (!no_cupti(api).empty()) GTEST_SKIP() << no_cupti(api);
  const std::map<std::string, MetricKind> names = base_metrics(api, "GH100");
  EXPECT_GT(names.size(), 1000U);
  EXPECT_EQ(names.at("dram__bytes_read"), MetricKind::counter);
  EXPECT_EQ(names.at("lts__t_sector_hit_rate"), MetricKind::ratio);
  EXPECT_EQ(names.at("dram__throughput"), MetricKind::throughput);
  EXPECT_THROW(base_metrics(api, "H200"), CounterFailure);
  EXPECT_TRUE(has_metric(api, "GH100", "dram__bytes_read.sum"));
  for (const char* name : {"dram__bytes_read", "dram__bytes_read.summ", "dram__bytes", "", ".sum",
                           "dram__bytes_read.sum.sum", "lts__t_sector_hit_rate.sum"}) {
    EXPECT_FALSE(has_metric(api, "GH100", name)) << name;
  }
}

TEST(MetricPlan, OneUnknownNameRefusesTheList) {
  const CuptiApi api;
  if (!no_cupti(api).empty()) GTEST_SKIP() << no_cupti(api);
  EXPECT_THROW(MetricPlan(api, "GH100", {"dram__bytes_read.sum", "dram__bytes_reed.sum"}),
               CounterFailure);
  EXPECT_EQ(MetricPlan(api, "GH100", {"dram__bytes_read.sum"}).passes(), 1U);
}

// What a person typed, with what was meant.
TEST(RefusedMetrics, NameWhatWasMeant) {
  const CuptiApi api;
  if (!no_cupti(api).empty()) GTEST_SKIP() << no_cupti(api);
  const std::map<std::string, std::string> refused = refused_metrics(
      api, "GH100",
      {"dram__bytes_read.sum", "dram__bytes_reed.sum", "dram__bytes_read.summ",
       "lts__t_sector_hit_rate.sum", "dram__throughput.sum", "dram__bytes_op_read.sum",
       "TPC.TriageCompute.sm__inst_executed_realtime", "nothing_like_it.sum"});
  EXPECT_FALSE(refused.contains("dram__bytes_read.sum"));
  EXPECT_EQ(refused.at("dram__bytes_reed.sum"),
            "GH100 has no such metric; did you mean 'dram__bytes_read.sum'?");
  EXPECT_EQ(refused.at("dram__bytes_read.summ").find("dram__bytes_read takes .sum, .avg"), 0U);
  EXPECT_EQ(refused.at("lts__t_sector_hit_rate.sum"),
            "lts__t_sector_hit_rate takes .ratio, .pct or .max_rate");
  EXPECT_EQ(refused.at("dram__throughput.sum").find("dram__throughput takes .avg.pct"), 0U);
  EXPECT_EQ(
      refused.at("TPC.TriageCompute.sm__inst_executed_realtime").find("TPC.TriageCompute.sm__"), 0U)
      << "the dots are part of the name";
  EXPECT_EQ(refused.at("nothing_like_it.sum"), "GH100 has no such metric");
  EXPECT_EQ(refused.size(), 7U);
}

}  // namespace
}  // namespace rooflash
