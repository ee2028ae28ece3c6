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
  EXPECT_EQ(fp8_modes(with({})), (Fp8Modes{ScaleSpan::block, false, true}));
  EXPECT_EQ(fp8_modes(with({{"scale", "head"}, {"hadamard", "on"}, {"accum", "fast"}})),
            (Fp8Modes{ScaleSpan::head, true, false}));
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
  EXPECT_NE(unrotatable(p).find("powers of 2, not 96"), std::string::npos);
  // They say nothing of other types.
  p.dtype = DType::bf16;
  EXPECT_EQ(unrotatable(p), "");
}

TEST(Fp8Modes, DefaultsAreDropped) {
  Problem p = with({{"scale", "block"}, {"accum", "fast"}, {"hadamard", "off"}, {"split", "4"}});
  drop_fp8_defaults(p);
  EXPECT_EQ(p.options, (std::map<std::string, std::string>{{"accum", "fast"}, {"split", "4"}}));
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
