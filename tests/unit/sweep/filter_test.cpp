#include "sweep/filter.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rooflash {
namespace {

class FilterTest : public ::testing::Test {
 protected:
  FilterTest() {
    problem_.dtype = DType::bf16;
    problem_.batch = 4;
    problem_.heads_q = 16;
    problem_.heads_kv = 4;
    problem_.seqlen_q = 1024;
    problem_.seqlen_kv = 4096;
    problem_.headdim = 192;
    problem_.headdim_v = 128;
  }
  bool keeps(std::string_view text) const {
    return Filter::parse(text).matches("fa2", problem_, "cuda:0");
  }
  Problem problem_;
};

std::string error_of(std::string_view text) {
  try {
    Filter::parse(text);
  } catch (const UsageError& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

TEST_F(FilterTest, NoFilterKeepsEverything) {
  EXPECT_TRUE(Filter().matches("fa2", problem_, "cuda:0"));
}

TEST_F(FilterTest, EveryKeyReadsItsField) {
  for (const char* text :
       {"kernel:fa2", "device:cuda:0", "pass:fwd", "dtype:bf16", "mask:none", "causal:false",
        "align:bottom-right", "distribution:normal", "batch-size:4", "nheads:16", "nheads-kv:4",
        "gqa-ratio:4", "seqlen:4k", "seqlen-q:1024", "headdim:192", "headdim-v:128",
        "case:fa2/fwd/bf16/b4.h16.kv4/q1024.k4096/d192-128/full"}) {
    EXPECT_TRUE(keeps(text)) << text;
    EXPECT_FALSE(keeps(std::string("-") + text)) << text;
  }
  for (const char* text :
       {"kernel:naive", "device:cuda:1", "pass:bwd", "dtype:fp16", "mask:causal", "causal:true",
        "align:top-left", "distribution:outlier", "batch-size:5", "nheads:4", "nheads-kv:16",
        "gqa-ratio:1", "seqlen:1k", "seqlen-q:4k", "headdim:128", "headdim-v:192", "case:fa2"}) {
    EXPECT_FALSE(keeps(text)) << text;
  }
}

TEST_F(FilterTest, OptionsOfE4m3HaveTheirDefaults) {
  EXPECT_FALSE(keeps("fp8-accum:exact"));  // of bf16 there are none
  problem_.dtype = DType::e4m3;
  problem_.options["accum"] = "fast";
  EXPECT_TRUE(keeps("fp8-accum:fast fp8-scale:block fp8-hadamard:off"));
  EXPECT_FALSE(keeps("fp8-accum:exact OR fp8-scale:head OR fp8-hadamard:on"));
  EXPECT_TRUE(keeps("fp8-max:lazy fp8-smooth:off fp8-out:bf16"));
  EXPECT_FALSE(keeps("fp8-max:true OR fp8-smooth:on OR fp8-out:fp16,e4m3"));
}

TEST_F(FilterTest, Comparisons) {
  EXPECT_TRUE(keeps("seqlen:>=4k") && keeps("seqlen:<=4k") && keeps("seqlen:=4096"));
  EXPECT_TRUE(keeps("seqlen:>4095") && keeps("seqlen:<4097"));
  EXPECT_FALSE(keeps("seqlen:>4k") || keeps("seqlen:<4k") || keeps("seqlen:>=4097"));
}

TEST_F(FilterTest, GlobsMatchWholeNames) {
  EXPECT_TRUE(keeps("kernel:fa*") && keeps("kernel:*2") && keeps("kernel:*") &&
              keeps("device:cuda:*") && keeps("case:fa2/*/d192*"));
  EXPECT_FALSE(keeps("kernel:n*e") || keeps("kernel:*naive") || keeps("device:sim:*"));
  EXPECT_TRUE(keeps("case:*b4*k40*full"));
}

TEST_F(FilterTest, OperatorsBindAsDocumented) {
  EXPECT_TRUE(keeps("kernel:fa2 dtype:(bf16 OR fp16) seqlen:>=4k -causal:true"));
  EXPECT_FALSE(keeps("kernel:fa2 dtype:(fp32 OR fp16)"));
  EXPECT_TRUE(keeps("kernel:naive dtype:fp16 OR seqlen:4k"));  // AND binds tighter than OR
  EXPECT_FALSE(keeps("kernel:naive (dtype:fp16 OR seqlen:4k)"));
  EXPECT_TRUE(keeps("kernel:fa2 AND dtype:bf16 AND -(mask:causal OR seqlen:1k)"));
  EXPECT_TRUE(keeps("--kernel:fa2"));
  EXPECT_TRUE(keeps("  ( kernel:fa2 )  "));
  EXPECT_FALSE(keeps("dtype:bf16 AND kernel:naive"));
  EXPECT_TRUE(keeps("seqlen:(>=8k OR <=4k)"));
}

TEST_F(FilterTest, ListsAreAlternatives) {
  EXPECT_TRUE(keeps("seqlen:1k,4k") && keeps("seqlen:1k:4k:x2") && keeps("dtype:fp16,bf16"));
  EXPECT_FALSE(keeps("seqlen:1k,2k") || keeps("seqlen:1k:3k:1k") || keeps("dtype:fp16,fp32"));
  EXPECT_FALSE(keeps("-seqlen:1k,4k"));
  EXPECT_EQ(error_of("seqlen:4k,").rfind("--filter: seqlen: '4k,' has an empty element", 0), 0U);
}

TEST_F(FilterTest, SeveralFiltersStandAlone) {
  const auto keeps_all = [&](const std::vector<std::string>& texts) {
    return Filter::all_of(texts).matches("fa2", problem_, "cuda:0");
  };
  EXPECT_TRUE(keeps_all({}));
  EXPECT_TRUE(keeps_all({"kernel:fa2", "dtype:bf16"}));
  EXPECT_FALSE(keeps_all({"kernel:fa2", "dtype:fp16"}));
  EXPECT_FALSE(keeps_all({"dtype:bf16 OR kernel:naive", "kernel:naive"}));
  EXPECT_THROW(keeps_all({"kernel:fa2) OR (kernel:naive", "dtype:bf16"}), UsageError);
}

TEST(FilterErrors, NamesThatNothingHas) {
  EXPECT_EQ(error_of("kernel:fa22"),
            "--filter: kernel is never 'fa22' at column 8 of 'kernel:fa22' | did you mean 'fa2'?");
  EXPECT_EQ(
      error_of("device:h200"),
      "--filter: device is never 'h200' at column 8 of 'device:h200' | devices are named as in "
      "cuda:0 and sim:h200");
  EXPECT_EQ(error_of("device:cuda:*"), "no error");
  EXPECT_EQ(error_of("device:sim:h*"), "no error");
  EXPECT_EQ(error_of("kernel:test_*"), "no error");
}

TEST(Filter, ARecordMayHoldNamesThatThisBuildDoesNotKnow) {
  EXPECT_THROW(Filter::parse("kernel:older"), UsageError);
  const Filter filter = Filter::parse("kernel:older", Filter::Names::any);
  EXPECT_TRUE(filter.matches("older", Problem{}, "cuda:0"));
  EXPECT_FALSE(filter.matches("fa2", Problem{}, "cuda:0"));
  EXPECT_THROW(Filter::parse("dtype:older", Filter::Names::any), UsageError);
}

TEST(FilterErrors, SayWhereAndWhat) {
  EXPECT_EQ(error_of("kernel:fa2 dytpe:bf16"),
            "--filter: unknown key 'dytpe' at column 12 of 'kernel:fa2 dytpe:bf16' | did you mean "
            "'dtype'?");
  EXPECT_EQ(error_of("dtype:bf61").rfind("--filter: dtype is never 'bf61' at column 7", 0), 0U);
  EXPECT_EQ(error_of("seqlen:>=x").rfind("--filter: seqlen: 'x' is not a number", 0), 0U);
  EXPECT_EQ(error_of("seqlen:>=0").rfind("--filter: seqlen: '0' is not positive", 0), 0U);
  EXPECT_EQ(error_of("fa2").rfind("--filter: expected KEY:VALUE at column 1", 0), 0U);
  EXPECT_EQ(error_of("").rfind("--filter: expected KEY:VALUE at column 1", 0), 0U);
  EXPECT_EQ(error_of("kernel:").rfind("--filter: kernel needs a value at column 8", 0), 0U);
  EXPECT_EQ(error_of("(kernel:fa2").rfind("--filter: expected ')' at column 12", 0), 0U);
  EXPECT_EQ(error_of("kernel:fa2)").rfind("--filter: unexpected ')' at column 11", 0), 0U);
  EXPECT_EQ(error_of("dtype:(bf16 fp16)").rfind("--filter: expected OR or ')' at column 13", 0),
            0U);
  EXPECT_EQ(error_of("kernel:fa2 OR").rfind("--filter: expected KEY:VALUE at column 14", 0), 0U);
  EXPECT_EQ(error_of("OR kernel:fa2").rfind("--filter: expected KEY:VALUE at column 1", 0), 0U);
  EXPECT_EQ(error_of("kernel:fa2 AND").rfind("--filter: expected KEY:VALUE at column 15", 0), 0U);
  EXPECT_EQ(error_of(std::string(100000, '(')).rfind("--filter: nested too deeply", 0), 0U);
  EXPECT_EQ(error_of(std::string(100000, '-')).rfind("--filter: nested too deeply", 0), 0U);
}

}  // namespace
}  // namespace rooflash
