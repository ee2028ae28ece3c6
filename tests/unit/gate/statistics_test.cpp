#include "gate/statistics.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "record/reader.hpp"

namespace rooflash {
namespace {

using Values = std::vector<double>;

// What SciPy says; see make_oracles.py.
const nlohmann::json& oracles() {
  static const nlohmann::json parsed = nlohmann::json::parse(
      read_text(std::string(ROOFLASH_SOURCE_DIR) + "/tests/unit/gate/oracles.json"));
  return parsed;
}

void expect_interval(const std::optional<Interval>& ci, const nlohmann::json& expected) {
  ASSERT_EQ(ci.has_value(), !expected.is_null());
  if (!ci) return;
  EXPECT_NEAR(ci->low, expected[0].get<double>(), 1e-9);
  EXPECT_NEAR(ci->high, expected[1].get<double>(), 1e-9);
}

TEST(GateStatistics, OneSampleAgreesWithSciPy) {
  ASSERT_GE(oracles()["one_sample"].size(), 20U);
  for (const auto& oracle : oracles()["one_sample"]) {
    SCOPED_TRACE(oracle["name"]);
    const Values d = oracle["d"];
    EXPECT_NEAR(hodges_lehmann(d), oracle["estimate"].get<double>(), 1e-9);
    EXPECT_NEAR(signed_rank_p(d), oracle["p"].get<double>(), 1e-9);
    if (!oracle["tied"].get<bool>()) expect_interval(signed_rank_ci95(d), oracle["ci95"]);
  }
}

TEST(GateStatistics, TwoSamplesAgreeWithSciPy) {
  ASSERT_GE(oracles()["two_samples"].size(), 20U);
  for (const auto& oracle : oracles()["two_samples"]) {
    SCOPED_TRACE(oracle["name"]);
    const Values a = oracle["a"];
    const Values b = oracle["b"];
    EXPECT_NEAR(hodges_lehmann(a, b), oracle["estimate"].get<double>(), 1e-9);
    EXPECT_NEAR(rank_sum_p(a, b), oracle["p"].get<double>(), 1e-9);
    if (!oracle["tied"].get<bool>()) expect_interval(rank_sum_ci95(a, b), oracle["ci95"]);
  }
}

TEST(GateStatistics, BenjaminiHochbergAgreesWithSciPy) {
  ASSERT_GE(oracles()["benjamini_hochberg"].size(), 5U);
  for (const auto& oracle : oracles()["benjamini_hochberg"]) {
    const Values p = oracle["p"];
    const Values expected = oracle["q"];
    const Values q = benjamini_hochberg(p);
    ASSERT_EQ(q.size(), expected.size());
    for (std::size_t i = 0; i < q.size(); ++i) EXPECT_NEAR(q[i], expected[i], 1e-12);
  }
}

TEST(GateStatistics, NoValuesDecideNothing) {
  EXPECT_TRUE(std::isnan(hodges_lehmann(Values{})));
  EXPECT_TRUE(std::isnan(hodges_lehmann(Values{1}, Values{})));
  EXPECT_FALSE(signed_rank_ci95(Values{}));
  EXPECT_FALSE(rank_sum_ci95(Values{1, 2}, Values{}));
  EXPECT_DOUBLE_EQ(signed_rank_p(Values{}), 1);
  EXPECT_DOUBLE_EQ(rank_sum_p(Values{1, 2}, Values{}), 1);
  EXPECT_TRUE(benjamini_hochberg(Values{}).empty());
}

TEST(GateStatistics, IdenticalValuesGiveAPointAndNoEvidence) {
  const Values same(7, 3.0);
  const auto ci = rank_sum_ci95(same, same);
  ASSERT_TRUE(ci);
  EXPECT_DOUBLE_EQ(ci->low, 0);
  EXPECT_DOUBLE_EQ(ci->high, 0);
  EXPECT_DOUBLE_EQ(rank_sum_p(same, same), 1);
}

// Ties only widen the interval: its ranks are those of distinct values.
TEST(GateStatistics, TiesKeepTheRanksOfDistinctValues) {
  const auto ci = signed_rank_ci95(Values{1, 1, 2, 2, 3, 3});
  ASSERT_TRUE(ci);
  EXPECT_DOUBLE_EQ(ci->low, 1);
  EXPECT_DOUBLE_EQ(ci->high, 3);
}

TEST(GateStatistics, OrderOfTheSamplesSwapsTheSign) {
  const Values a{10.1, 10.4, 9.9, 10.2, 10.0};
  const Values b{11.0, 10.9, 11.3};
  const auto forth = rank_sum_ci95(a, b);
  const auto back = rank_sum_ci95(b, a);
  ASSERT_TRUE(forth && back);
  EXPECT_DOUBLE_EQ(hodges_lehmann(a, b), -hodges_lehmann(b, a));
  EXPECT_DOUBLE_EQ(forth->low, -back->high);
  EXPECT_DOUBLE_EQ(forth->high, -back->low);
  EXPECT_DOUBLE_EQ(rank_sum_p(a, b), rank_sum_p(b, a));
}

}  // namespace
}  // namespace rooflash
