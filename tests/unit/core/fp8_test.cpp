#include "core/fp8.hpp"

#include <gtest/gtest.h>

namespace rooflash {
namespace {

Problem with(std::map<std::string, std::string> options) {
  Problem p;
  p.dtype = DType::e4m3;
  p.options = std::move(options);
  return p;
}

TEST(Fp8Modes, ComeFromTheOptions) {
  EXPECT_EQ(fp8_modes(with({})), Fp8Modes{});
  EXPECT_EQ(fp8_modes(with({{"scale", "head"}, {"hadamard", "on"}, {"accum", "fast"}})),
            (Fp8Modes{.scale = ScaleSpan::head, .hadamard = true, .exact_accumulation = false}));
  EXPECT_EQ(fp8_modes(with({{"max", "true"}, {"smooth", "on"}, {"out", "e4m3"}})),
            (Fp8Modes{.true_maximum = true, .smooth_values = true, .output = DType::e4m3}));
  EXPECT_EQ(fp8_modes(with({{"scale", "tensor"}})).scale, ScaleSpan::tensor);
}

TEST(Fp8Modes, BadOptionsAreNamed) {
  EXPECT_EQ(invalid_reason(with({{"accum", "fast"}, {"split", "4"}})), "");
  EXPECT_EQ(invalid_reason(with({{"scale", "row"}})),
            "option scale: 'row' is not one of block, head, tensor");
  EXPECT_EQ(invalid_reason(with({{"hadamard", "yes\x1b"}})).find('\x1b'), std::string::npos);
  // One case has one name.
  EXPECT_EQ(invalid_reason(with({{"accum", "exact"}})),
            "accum=exact is what a case without the option has");
  Problem p = with({{"hadamard", "on"}});
  p.headdim = 96;
  EXPECT_EQ(invalid_reason(p), "");  // but no kernel takes it
  EXPECT_NE(unusable_modes(p).find("powers of 2, not 96"), std::string::npos);
  p = with({{"out", "e4m3"}, {"smooth", "on"}});
  EXPECT_EQ(invalid_reason(p), "");
  EXPECT_NE(unusable_modes(p).find("smooth=on"), std::string::npos);
  p.options.erase("smooth");
  EXPECT_EQ(unusable_modes(p), "");
  // They say nothing of other types.
  p = with({{"hadamard", "on"}});
  p.headdim = 96;
  p.dtype = DType::bf16;
  EXPECT_EQ(unusable_modes(p), "");
}

TEST(Fp8Modes, DefaultsAreDropped) {
  Problem p = with({{"scale", "block"}, {"accum", "fast"}, {"hadamard", "off"}, {"split", "4"}});
  drop_fp8_defaults(p);
  EXPECT_EQ(p.options, (std::map<std::string, std::string>{{"accum", "fast"}, {"split", "4"}}));
}

TEST(Fp8Modes, SayTheTypeOfO) {
  EXPECT_EQ(output_dtype(with({})), DType::bf16);
  EXPECT_EQ(output_dtype(with({{"out", "fp16"}})), DType::fp16);
  EXPECT_EQ(output_dtype(with({{"out", "e4m3"}})), DType::e4m3);
  Problem p;
  p.dtype = DType::fp32;
  EXPECT_EQ(output_dtype(p), DType::fp32);
  EXPECT_EQ(tensor_bytes(with({})) - tensor_bytes(with({{"out", "e4m3"}})), o_elements(with({})));
}

TEST(Fp8Scales, CountTheMeanOfV) {
  Problem p = with({});
  p.heads_q = p.heads_kv = 3;
  p.headdim = p.headdim_v = 64;
  const std::int64_t without = scale_elements(p);
  EXPECT_EQ(v_mean_elements(p), 0);
  p.options["smooth"] = "on";
  EXPECT_EQ(v_mean_elements(p), 3 * 64);
  EXPECT_EQ(scale_elements(p), without + 3 * 64);
  p.dtype = DType::bf16;
  EXPECT_EQ(v_mean_elements(p), 0);
}

TEST(Fp8Scales, CoverRaggedEnds) {
  Problem p;
  p.seqlen_q = 65;
  p.seqlen_kv = 192;
  EXPECT_EQ(q_scale_blocks(p), 2);
  EXPECT_EQ(kv_scale_blocks(p), 1);
}

}  // namespace
}  // namespace rooflash
