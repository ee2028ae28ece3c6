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

constexpr DType kDTypes[] = {DType::fp32, DType::fp16, DType::bf16, DType::e4m3};

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

// CUPTI's host side plans metrics for any chip on a machine with no GPU: every name must exist, and
// on Hopper a set must need one pass.
class Plan : public testing::TestWithParam<const char*> {};

std::size_t passes_of(const CuptiApi& api, const char* chip, const MetricNames& names) {
  CUpti_Profiler_Host_Initialize_Params host{};
  host.structSize = CUpti_Profiler_Host_Initialize_Params_STRUCT_SIZE;
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip;
  EXPECT_EQ(api.cuptiProfilerHostInitialize(&host), CUPTI_SUCCESS) << chip;
  std::size_t passes = 0;
  std::vector<const char*> pointers;
  const std::vector<std::string> all = names.all();
  for (const std::string& name : all) pointers.push_back(name.c_str());
  // One wrong name refuses the whole list, and metrics added one by one cost a pass each.
  CUpti_Profiler_Host_ConfigAddMetrics_Params add{};
  add.structSize = CUpti_Profiler_Host_ConfigAddMetrics_Params_STRUCT_SIZE;
  add.pHostObject = host.pHostObject;
  add.ppMetricNames = pointers.data();
  add.numMetrics = pointers.size();
  const CUptiResult added = api.cuptiProfilerHostConfigAddMetrics(&add);
  EXPECT_EQ(added, CUPTI_SUCCESS) << chip;
  if (added == CUPTI_SUCCESS) {
    CUpti_Profiler_Host_GetConfigImageSize_Params size{};
    size.structSize = CUpti_Profiler_Host_GetConfigImageSize_Params_STRUCT_SIZE;
    size.pHostObject = host.pHostObject;
    EXPECT_EQ(api.cuptiProfilerHostGetConfigImageSize(&size), CUPTI_SUCCESS);
    std::vector<std::uint64_t> image((size.configImageSize + 7) / 8);
    CUpti_Profiler_Host_GetConfigImage_Params get{};
    get.structSize = CUpti_Profiler_Host_GetConfigImage_Params_STRUCT_SIZE;
    get.pHostObject = host.pHostObject;
    get.configImageSize = size.configImageSize;
    get.pConfigImage = reinterpret_cast<std::uint8_t*>(image.data());
    EXPECT_EQ(api.cuptiProfilerHostGetConfigImage(&get), CUPTI_SUCCESS);
    CUpti_Profiler_Host_GetNumOfPasses_Params count{};
    count.structSize = CUpti_Profiler_Host_GetNumOfPasses_Params_STRUCT_SIZE;
    count.configImageSize = size.configImageSize;
    count.pConfigImage = get.pConfigImage;
    EXPECT_EQ(api.cuptiProfilerHostGetNumOfPasses(&count), CUPTI_SUCCESS);
    passes = count.numOfPasses;
  }
  CUpti_Profiler_Host_Deinitialize_Params end{};
  end.structSize = CUpti_Profiler_Host_Deinitialize_Params_STRUCT_SIZE;
  end.pHostObject = host.pHostObject;
  EXPECT_EQ(api.cuptiProfilerHostDeinitialize(&end), CUPTI_SUCCESS);
  return passes;
}

TEST_P(Plan, NamesExist) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "CUPTI opens libraries in a way that AddressSanitizer refuses";
#endif
  const CuptiApi api;
  if (!api.error().empty()) GTEST_SKIP() << api.error();
  const std::string chip = GetParam();
  for (const DType dtype : kDTypes) {
    const std::size_t passes = passes_of(api, chip.c_str(), *metric_names(chip, dtype));
    EXPECT_GE(passes, 1U);
    if (chip == "GH100") {
      EXPECT_EQ(passes, 1U) << to_string(dtype);
    }
    RecordProperty(std::string(to_string(dtype)), static_cast<int>(passes));
  }
}

INSTANTIATE_TEST_SUITE_P(Chips, Plan,
                         testing::Values("GV100", "TU102", "GA100", "GA102", "AD102", "GH100",
                                         "GB100", "GB202"));

}  // namespace
}  // namespace rooflash
