#include "model/gpu_spec.hpp"

#include <gtest/gtest.h>

#include <array>

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
  for (const char* key : {"v100", "v100-16", "a100-40", "a100", "a100-pcie", "a100-pcie-40", "h100",
                          "h100-pcie", "h200", "b200", "l40s", "rtx4090", "rtx5090"}) {
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
  EXPECT_EQ(find_gpu_by_name("NVIDIA A100-PCIE-40GB")->hbm_gbps, 1555);
  EXPECT_EQ(find_gpu_by_name("NVIDIA A100 80GB PCIe")->hbm_gbps, 1935);
  EXPECT_EQ(find_gpu_by_name("NVIDIA H100 NVL"), nullptr);
}

// What the sources of suites/gpus.json say in other numbers than the file, so that a typo shows.
struct Facts {
  const char* key;
  double tensor_clock_mhz;  // at which the tensor peaks are stated
  double fp16_ops;          // dense, fp32 accumulation, per clock and SM; multiply-add = 2
  int fp32_lanes;           // per SM, a multiply-add each clock
  int bus_bits;
  double mbit_per_pin;  // data rate of the memory
  int power_w;
};

// fp16_ops: V100, A100 (whitepapers: 8 x 64 and 4 x 256 multiply-adds), H100 (Hot Chips 34: 2048
// multiply-adds). GeForce cards run fp32 accumulation at half the rate of the same SM in L40S.
// B200: no clock is stated; 1856 MHz is what its peaks give with twice Hopper's rate.
constexpr std::array kFacts = {
    Facts{"h200", 1830, 4096, 128, 6016, 6402, 700},
    Facts{"h100", 1830, 4096, 128, 5120, 5238, 700},
    Facts{"h100-pcie", 1620, 4096, 128, 5120, 3186, 350},
    Facts{"b200", 1856, 8192, 128, 7680, 7992, 1000},
    Facts{"a100", 1410, 2048, 64, 5120, 3186, 400},
    Facts{"a100-40", 1410, 2048, 64, 5120, 2430, 400},
    Facts{"a100-pcie", 1410, 2048, 64, 5120, 3024, 300},
    Facts{"a100-pcie-40", 1410, 2048, 64, 5120, 2430, 250},
    Facts{"v100", 1530, 1024, 64, 4096, 1754, 300},
    Facts{"v100-16", 1530, 1024, 64, 4096, 1754, 300},
    Facts{"l40s", 2520, 1024, 128, 384, 18000, 350},
    Facts{"rtx4090", 2520, 512, 128, 384, 21000, 450},
    Facts{"rtx5090", 2407, 512, 128, 512, 28000, 575},
};

double dtype_ratio(const std::string& dtype) {
  if (dtype == "e4m3") return 2;
  if (dtype == "tf32") return 0.5;
  return 1;
}

TEST(GpuSpecs, PeaksAreUnitsTimesRateTimesClock) {
  EXPECT_EQ(kFacts.size(), gpu_specs().size());
  for (const Facts& facts : kFacts) {
    SCOPED_TRACE(facts.key);
    const GpuSpec& spec = require_gpu(facts.key);
    EXPECT_EQ(spec.tensor_tflops.size(), spec.tensor_ops_per_clock_per_sm.size());
    for (const auto& [dtype, tflops] : spec.tensor_tflops) {
      const double ops = facts.fp16_ops * dtype_ratio(dtype);
      EXPECT_EQ(spec.tensor_ops_per_clock_per_sm.at(dtype), ops) << dtype;
      const double expected = ops * spec.sm_count * facts.tensor_clock_mhz * 1e-6;
      EXPECT_NEAR(tflops / expected, 1, 0.015) << dtype;
    }
    EXPECT_LE(facts.tensor_clock_mhz, spec.boost_clock_mhz);
    // Close enough to see one SM too many. B200's datasheet rounds, and says "up to" 8 TB/s.
    const bool rounded = spec.key == "b200";
    const double fp32 = 2.0 * facts.fp32_lanes * spec.sm_count * spec.boost_clock_mhz * 1e-6;
    EXPECT_NEAR(spec.fp32_tflops / fp32, 1, rounded ? 0.01 : 0.003);
    const double hbm = facts.bus_bits / 8.0 * facts.mbit_per_pin * 1e-3;
    EXPECT_NEAR(spec.hbm_gbps / hbm, 1, rounded ? 0.05 : 0.003);
  }
}

TEST(GpuSpecs, SourcesAreNamedAndAssumptionsSaid) {
  for (const Facts& facts : kFacts) {
    const std::string& source = require_gpu(facts.key).source;
    EXPECT_NE(source.find("https://"), std::string::npos) << facts.key;
    EXPECT_NE(source.find(std::to_string(facts.power_w) + " W"), std::string::npos) << facts.key;
    EXPECT_NE(source.find(". Assumed: "), std::string::npos) << facts.key;
  }
}

TEST(GpuSpecs, SizesAreConsistent) {
  for (const GpuSpec& spec : gpu_specs()) {
    EXPECT_LE(spec.smem_per_block_bytes, spec.smem_per_sm_bytes) << spec.key;
    EXPECT_GE(spec.smem_per_block_bytes, spec.smem_per_sm_bytes - 1024) << spec.key;
    EXPECT_GT(spec.memory_bytes, spec.l2_bytes) << spec.key;
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
  EXPECT_EQ(h200.hbm_copy_gbps, 4300);
  EXPECT_EQ(h200.gemm_tflops.at("bf16"), 793);
  EXPECT_EQ(h200.gemm_tflops.at("tf32"), 494.7);  // not measured: the datasheet's
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

GpuSpec parsed(const std::string& entry) {
  const auto specs = parse_gpu_specs("{\"gpus\": [" + entry + "]}", "g.json", gpu_specs());
  return specs.at(0);
}

std::string entry_error(const std::string& entry) {
  try {
    parsed(entry);
  } catch (const UsageError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

TEST(ParseGpuSpecs, AnEntryMayBeLikeAKnownOne) {
  const GpuSpec spec = parsed(
      R"({"key": "h20", "like": "h200", "names": ["NVIDIA H20"], "hbm_gbps": 4000, "sm_count": 78,
          "tensor_tflops": {"bf16": 148}, "source": "its datasheet"})");
  const GpuSpec& h200 = *find_gpu("h200");
  EXPECT_EQ(spec.key, "h20");
  EXPECT_EQ(spec.names, std::vector<std::string>{"NVIDIA H20"});
  EXPECT_EQ(spec.hbm_gbps, 4000);
  EXPECT_EQ(spec.tensor_tflops, (std::map<std::string, double>{{"bf16", 148}}));
  EXPECT_EQ(spec.l2_bytes, h200.l2_bytes);
  EXPECT_EQ(spec.source, "its datasheet; what that does not say is of h200");
  ASSERT_TRUE(h200.validated && h200.calibration);
  EXPECT_FALSE(spec.validated || spec.calibration);
}

TEST(ParseGpuSpecs, RefusesWhatCannotStandBesideTheKnownOnes) {
  const std::string rest = R"("names": ["NVIDIA H20"], "source": "s"})";
  EXPECT_EQ(entry_error(R"({"key": "h20", "like": "h20", )" + rest),
            "g.json:1: no GPU 'h20' in the built-in list | did you mean 'h200'?");
  EXPECT_EQ(
      entry_error(R"({"key": "x", "like": "h200", "names": ["NVIDIA H200"], "source": "s"})"),
      "g.json:1: 'NVIDIA H200' is the name of h200 | give the entry the key h200 to put it in "
      "that one's place");
  EXPECT_EQ(entry_error(R"({"key": "h200", "like": "h200", "names": ["NVIDIA H200"],
                            "source": "s"})"),
            "no error");
  EXPECT_EQ(entry_error(R"({"key": "../x", "like": "h200", )" + rest),
            "g.json:1: '../x' is no key | up to 32 of a to z, 0 to 9, '-' and '.', such as "
            "h200-oem");
  EXPECT_EQ(entry_error(R"({"key": "h20", "like": "h200", "sm_count": 4294967297, )" + rest),
            "g.json:1: 4294967297 is above 100000 | ");
  EXPECT_EQ(entry_error(R"({"key": "h20", "like": "h200", "names": ["\u001b[31m"],
                            "source": "s"})"),
            "g.json:1: is empty, longer than 1000 characters or holds one that cannot be shown | ");
  EXPECT_EQ(entry_error(R"({"key": "h20", "like": "h200", "names": ["NVIDIA H20"], "source": ""})"),
            "g.json:1: is empty, longer than 1000 characters or holds one that cannot be shown | ");
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
