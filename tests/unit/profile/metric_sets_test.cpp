#include "profile/metric_sets.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace rooflash {
namespace {

TEST(MetricSets, UnknownChipHasNone) {
  EXPECT_TRUE(metric_sets("XX999").empty());
  EXPECT_TRUE(run_metric_set("XX999").groups.empty());
}

class Chip : public testing::TestWithParam<std::string> {};

TEST_P(Chip, HasEverySetWithDistinctAndExplainedMetrics) {
  const std::vector<MetricSet> sets = metric_sets(GetParam());
  ASSERT_EQ(sets.size(), metric_set_names().size());
  for (std::size_t i = 0; i < sets.size(); ++i) {
    EXPECT_EQ(sets[i].name, metric_set_names()[i]);
    EXPECT_FALSE(sets[i].summary.empty());
    std::set<std::string> ids;
    std::set<std::string> names;
    for (const MetricGroup& group : sets[i].groups) {
      EXPECT_FALSE(group.empty()) << sets[i].name;
      for (const Metric& metric : group) {
        EXPECT_TRUE(ids.insert(metric.id).second) << metric.id << " twice in " << sets[i].name;
        EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
        EXPECT_FALSE(metric.unit.empty()) << metric.name;
        EXPECT_FALSE(metric.meaning.empty()) << metric.name;
        EXPECT_NE(metric.name.find('.'), std::string::npos) << metric.name;
      }
    }
  }
}

TEST_P(Chip, ExplainsWhatARowCounts) {
  const MetricSet run = run_metric_set(GetParam());
  ASSERT_EQ(run.groups.size(), 1U);
  EXPECT_GE(run.groups.front().size(), 8U);
  for (const Metric& metric : run.groups.front()) {
    EXPECT_NE(metric.id, metric.name) << "not in any set";
    EXPECT_FALSE(metric.meaning.empty()) << metric.name;
  }
}
INSTANTIATE_TEST_SUITE_P(Chips, Chip, testing::ValuesIn(known_chips()));

std::string name_of(std::string_view chip, std::string_view id) {
  for (const MetricSet& set : metric_sets(chip)) {
    for (const MetricGroup& group : set.groups) {
      for (const Metric& metric : group) {
        if (metric.id == id) return metric.name;
      }
    }
  }
  return {};
}

TEST(MetricSets, NamesDifferBetweenChips) {
  EXPECT_EQ(name_of("GH100", "hbm_read_bytes"), "dram__bytes_read.sum");
  EXPECT_EQ(name_of("GB202", "hbm_read_bytes"), "dram__bytes_op_read.sum");
  EXPECT_EQ(name_of("GA100", "tma_load_bytes"), "");
  EXPECT_NE(name_of("GB100", "tma_load_bytes"), "");
  EXPECT_NE(name_of("GH100", "stall_gmma"), "");
  EXPECT_EQ(name_of("GB100", "stall_gmma"), "");
  EXPECT_NE(name_of("GH100", "tensor_ops_bf16_wgmma"), "");
  EXPECT_NE(name_of("GA100", "tensor_ops_bf16"), "");
  EXPECT_EQ(name_of("GA100", "tensor_ops_e4m3"), "");
}

TEST(NamedMetrics, AreExplainedWhereASetHasThem) {
  const MetricSet set = named_metrics("GH100", {"dram__bytes_read.sum", "fe__cycles.sum"});
  ASSERT_EQ(set.groups.size(), 1U);
  EXPECT_EQ(set.groups[0][0].id, "hbm_read_bytes");
  EXPECT_EQ(set.groups[0][1].id, "fe__cycles.sum");
  EXPECT_EQ(set.groups[0][1].unit, "");
}

}  // namespace
}  // namespace rooflash
