#include "model/gpu_spec.hpp"

#include <gtest/gtest.h>

#include "core/embedded.hpp"
#include "core/error.hpp"

namespace rooflash {
namespace {

std::string spec_file() {
  return std::string(embedded("suites/gpus.json").value());
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string error_of(const std::string& text) {
  try {
    parse_gpu_specs(text, "g.json");
  } catch (const UsageError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

TEST(GpuSpecs, HoldTheCardsOneMayMeet) {
  for (const char* key : {"v100", "a100-40", "a100", "h100", "h100-pcie", "h200", "b200", "l40s",
                          "rtx4090", "rtx5090"}) {
    EXPECT_NE(find_gpu(key), nullptr) << key;
  }
}

TEST(GpuSpecs, UnknownCardsGetNoRoof) {
  EXPECT_EQ(find_gpu_by_name("NVIDIA H200"), find_gpu("h200"));
  EXPECT_EQ(find_gpu_by_name("NVIDIA H200 NVL"), nullptr);
  EXPECT_EQ(find_gpu_by_name("NVIDIA H20"), nullptr);
  EXPECT_EQ(find_gpu_by_name("h200"), nullptr);
  EXPECT_EQ(find_gpu("NVIDIA H200"), nullptr);
  EXPECT_EQ(find_gpu_by_name("NVIDIA H100 PCIe")->key, "h100-pcie");
}

TEST(GpuSpecs, NoPeakExceedsWhatTheTensorCoresCanIssue) {
  for (const GpuSpec& spec : gpu_specs()) {
    for (const auto& [dtype, tflops] : spec.tensor_tflops) {
      ASSERT_TRUE(spec.tensor_ops_per_clock_per_sm.contains(dtype)) << spec.key << dtype;
      const double issue =
          spec.tensor_ops_per_clock_per_sm.at(dtype) * spec.sm_count * spec.boost_clock_mhz * 1e-6;
      EXPECT_LE(tflops, issue * 1.03) << spec.key << ' ' << dtype;
      EXPECT_GE(tflops, issue * 0.90) << spec.key << ' ' << dtype;
    }
    EXPECT_LT(spec.smem_per_block_bytes, spec.smem_per_sm_bytes + 1) << spec.key;
    EXPECT_GT(spec.memory_bytes, spec.l2_bytes) << spec.key;
    EXPECT_FALSE(spec.source.empty());
    EXPECT_EQ(spec.validated, spec.key == "h200");
  }
}

TEST(GpuSpecs, OnlyAdaAndLaterHaveFp8) {
  for (const GpuSpec& spec : gpu_specs()) {
    EXPECT_EQ(peak_tflops(spec, DType::e4m3).has_value(), spec.compute_capability >= 89)
        << spec.key;
  }
  EXPECT_FALSE(peak_tflops(*find_gpu("v100"), DType::bf16).has_value());
  EXPECT_FALSE(balance_point(*find_gpu("v100"), DType::bf16).has_value());
  EXPECT_EQ(peak_tflops(*find_gpu("a100"), DType::fp32), 19.5);
}

TEST(GpuSpecs, BalancePointIsPeakOverMemoryRate) {
  EXPECT_NEAR(*balance_point(*find_gpu("h200"), DType::bf16), 206.1, 0.1);
  EXPECT_NEAR(*balance_point(*find_gpu("a100-40"), DType::fp16), 200.6, 0.1);
}

TEST(GpuSpecs, ModelRoofsAreTheMeasuredOnesWhereThereAreAny) {
  const Ceilings h200 = model_ceilings(*find_gpu("h200"), "sim:h200");
  EXPECT_EQ(h200.device, "sim:h200");
  EXPECT_EQ(h200.source, "model");
  EXPECT_EQ(h200.hbm_copy_gbps, 4284);
  EXPECT_EQ(h200.gemm_tflops.at("bf16"), 779);
  EXPECT_EQ(h200.gemm_tflops.at("fp16"), 989.4);  // not measured: the datasheet's
  const Ceilings a100 = model_ceilings(*find_gpu("a100"), "sim:a100");
  EXPECT_EQ(a100.hbm_read_gbps, 2039);
  EXPECT_EQ(datasheet(*find_gpu("h200")).hbm_gbps, 4800);
  EXPECT_EQ(datasheet(*find_gpu("h200")).gpu, "NVIDIA H200");
}

TEST(GpuSpecs, SimulatedDeviceIsMarked) {
  const DeviceInfo device = simulated_device(*find_gpu("l40s"));
  EXPECT_EQ(device.device, "sim:l40s");
  EXPECT_TRUE(device.simulated);
  EXPECT_EQ(device.compute_capability, 89);
  EXPECT_EQ(device.sm_count, 142);
}

TEST(GpuSpecs, MisspeltKeyIsAUsageErrorWithASuggestion) {
  try {
    require_gpu("h20");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "no GPU 'h20' in the list of specs");
    EXPECT_EQ(error.hint(), "did you mean 'h200'?");
  }
}

TEST(ParseGpuSpecs, IsStrict) {
  const std::string good = spec_file();
  EXPECT_EQ(error_of(good), "no error");
  EXPECT_EQ(error_of(replaced(good, "\"sm_count\"", "\"sm_cont\"")),
            "g.json:7: unknown key 'sm_cont' | did you mean 'sm_count'?");
  EXPECT_EQ(error_of(replaced(good, "\"sm_count\": 132", "\"sm_count\": \"132\"")),
            "g.json:7: expected a whole number, found a string | ");
  EXPECT_EQ(error_of(replaced(good, "\"sm_count\": 132", "\"sm_count\": 0")),
            "g.json:7: 0 is not positive | ");
  EXPECT_EQ(error_of(replaced(good, "\"sm_count\": 132,", "")),
            "g.json:3: key 'sm_count' is missing | ");
  EXPECT_EQ(error_of(replaced(good, "\"sm_count\": 132,", "\"sm_count\": 132, \"sm_count\": 1,")),
            "g.json:7: key 'sm_count' appears twice | ");
  EXPECT_NE(error_of(replaced(good, "\"h100\"", "\"h200\"")).find("'h200' appears twice"),
            std::string::npos);
  EXPECT_NE(error_of(good + "x").find("malformed JSON"), std::string::npos);
}

}  // namespace
}  // namespace rooflash
