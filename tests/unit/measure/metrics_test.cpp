#include "measure/metrics.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "measure/cupti_api.hpp"

namespace rooflash {
namespace {

std::map<std::string, double> filled(const MetricNames& names, double value) {
  std::map<std::string, double> values;
  for (const std::string& name : names.all()) values[name] = value;
  return values;
}

TEST(Interpret, MapsByNameAndConverts) {
  const MetricNames names = *metric_names("GH100", DType::bf16);
  std::map<std::string, double> values = filled(names, 1);
  values[names.gpu_time_ns] = 2500;
  values[names.sm_clock_hz] = 1.98e9;
  values[names.hbm_read_bytes] = 1e6;
  values[names.sm_l2_read_sectors] = 10;
  values[names.sm_l2_write_sectors] = 3;
  values[names.tensor_ops[0]] = 100;
  values[names.tensor_ops[1]] = 23;
  const Counters counters =
      interpret(names, values, {.min_hbm_read_bytes = 9e5, .tensor_ops = true});
  EXPECT_EQ(counters.status, "ok");
  EXPECT_DOUBLE_EQ(*counters.gpu_time_us, 2.5);
  EXPECT_DOUBLE_EQ(*counters.sm_clock_mhz, 1980);
  EXPECT_DOUBLE_EQ(*counters.sm_l2_read_bytes, 320);
  EXPECT_DOUBLE_EQ(*counters.sm_l2_write_bytes, 96);
  EXPECT_DOUBLE_EQ(*counters.tensor_ops, 123);
}

TEST(Interpret, RefusesImpossibleValues) {
  const MetricNames names = *metric_names("GH100", DType::fp16);
  const auto refused = [&](std::map<std::string, double> values, CounterExpectation expected) {
    const Counters counters = interpret(names, values, expected);
    return counters.status == "invalid" && !counters.reason.empty() && !counters.gpu_time_us &&
           !counters.tensor_ops;
  };
  std::map<std::string, double> values = filled(names, 5);
  EXPECT_FALSE(refused(values, {}));
  EXPECT_TRUE(refused(values, {.min_hbm_read_bytes = 6})) << "fewer bytes than can be";
  values[names.xu_pipe_pct] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(refused(values, {})) << "NaN";
  values = filled(names, 5);
  values.erase(names.hbm_write_bytes);
  EXPECT_TRUE(refused(values, {})) << "missing";
  values = filled(names, 5);
  values[names.gpu_time_ns] = 0;
  EXPECT_TRUE(refused(values, {})) << "no time";
  values = filled(names, 5);
  for (const std::string& name : names.tensor_ops) values[name] = 0;
  EXPECT_FALSE(refused(values, {}));
  EXPECT_TRUE(refused(values, {.tensor_ops = true})) << "no tensor operations";
}

TEST(Metrics, UnknownChipHasNone) {
  EXPECT_FALSE(metric_names("XX999", DType::bf16));
}

TEST(CuptiApi, SaysWhyItIsNotThere) {
  ASSERT_EQ(setenv("ROOFLASH_CUPTI", "0", 1), 0);
  EXPECT_NE(CuptiApi().error().find("switched off"), std::string::npos);
  ASSERT_EQ(setenv("ROOFLASH_CUPTI", "/nonexistent/libcupti.so", 1), 0);
  EXPECT_NE(CuptiApi().error().find("/nonexistent/libcupti.so"), std::string::npos);
  ASSERT_EQ(unsetenv("ROOFLASH_CUPTI"), 0);
}

}  // namespace
}  // namespace rooflash
