#include "sweep/axes.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"

namespace rooflash {
namespace {

Axes axes_of(const std::vector<std::pair<std::string, std::string>>& settings) {
  Axes axes;
  for (const auto& [name, text] : settings) set_axis(axes, name, text, "--" + name);
  return axes;
}

std::vector<std::string> ids(const Axes& axes) {
  std::vector<std::string> result;
  for (const Problem& p : expand(axes)) result.push_back(case_id("x", p));
  return result;
}

std::string error_of(const std::vector<std::pair<std::string, std::string>>& settings) {
  try {
    expand(axes_of(settings));
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

const std::vector<std::pair<std::string, std::string>> kTiny = {{"seqlen", "512"},
                                                                {"batch-size", "1"},
                                                                {"nheads", "4"},
                                                                {"headdim", "64"},
                                                                {"causal", "false"}};

std::vector<std::pair<std::string, std::string>> tiny_and(
    std::vector<std::pair<std::string, std::string>> more) {
  more.insert(more.begin(), kTiny.begin(), kTiny.end());
  return more;
}

TEST(Expand, DefaultsAreThePeerGrid) {
  const std::vector<Problem> problems = expand(Axes{});
  ASSERT_EQ(problems.size(), 12U);
  std::set<std::int64_t> lengths;
  int causal = 0;
  for (const Problem& p : problems) {
    lengths.insert(p.seqlen_kv);
    causal += p.mask.kind == MaskKind::causal ? 1 : 0;
    EXPECT_EQ(p.batch * p.seqlen_kv, 16384);
    EXPECT_EQ(p.heads_q * p.headdim, 2048);
    EXPECT_EQ(p.heads_kv, p.heads_q);
    EXPECT_EQ(p.seqlen_q, p.seqlen_kv);
    EXPECT_EQ(p.headdim, 128);
    EXPECT_EQ(p.dtype, DType::bf16);
    EXPECT_EQ(p.pass, Pass::fwd);
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{512, 1024, 2048, 4096, 8192, 16384}));
  EXPECT_EQ(causal, 6);
}

TEST(Expand, IsTheProductOfTheAxes) {
  const std::vector<Problem> problems = expand(axes_of({{"seqlen", "512,1k"},
                                                        {"seqlen-q", "1,128"},
                                                        {"batch-size", "1,2"},
                                                        {"nheads", "4,8"},
                                                        {"nheads-kv", "1,4"},
                                                        {"headdim", "64,192-128"},
                                                        {"dtype", "fp16,bf16"},
                                                        {"pass", "fwd,bwd"},
                                                        {"distribution", "normal,outlier"},
                                                        {"causal", "both"}}));
  EXPECT_EQ(problems.size(), 1024U);
}

TEST(Expand, BatchAndHeadsAreAtLeastOne) {
  EXPECT_EQ(ids(axes_of({{"seqlen", "32k"}, {"headdim", "4096"}, {"causal", "false"}})),
            (std::vector<std::string>{"x/fwd/bf16/b1.h1.kv1/q32768.k32768/d4096/full"}));
}

TEST(Expand, HeadDims) {
  const auto of = [](const std::string& d, const std::string& dv = "") {
    auto settings = tiny_and({{"headdim", d}});
    if (!dv.empty()) settings.emplace_back("headdim-v", dv);
    return ids(axes_of(settings));
  };
  const std::string head = "x/fwd/bf16/b1.h4.kv4/q512.k512/d";
  EXPECT_EQ(of("64,192-128"), (std::vector<std::string>{head + "64/full", head + "192-128/full"}));
  EXPECT_EQ(of("64:256:x2").size(), 3U);
  EXPECT_EQ(of("192", "128"), (std::vector<std::string>{head + "192-128/full"}));
}

TEST(Expand, WindowAndCausal) {
  const auto masks = [](std::vector<std::pair<std::string, std::string>> more) {
    std::vector<std::string> result;
    for (const std::string& id : ids(axes_of(tiny_and(more)))) {
      result.push_back(id.substr(id.rfind('/') + 1));
    }
    return result;
  };
  using Labels = std::vector<std::string>;
  EXPECT_EQ(masks({{"window", "255,7"}}), (Labels{"win255.7"}));
  EXPECT_EQ(masks({{"window", "255,7"}, {"causal", "true"}}), (Labels{"win255.0"}));
  EXPECT_EQ(masks({{"window", "255,7"}, {"causal", "both"}}), (Labels{"win255.7", "win255.0"}));
  EXPECT_EQ(masks({{"window", "255,0"}, {"causal", "both"}}), (Labels{"win255.0"}));
  EXPECT_EQ(masks({{"window", "0,0"}}), (Labels{"win0.0"}));
  EXPECT_EQ(masks({{"window", "inf,7"}}), (Labels{"wininf.7"}));
  EXPECT_EQ(masks({{"window", "-1,-1"}}), (Labels{"full"}));
  EXPECT_EQ(masks({{"window", "inf,0"}}), (Labels{"causal"}));
  EXPECT_EQ(masks({{"align", "top-left"}, {"causal", "both"}}), (Labels{"full", "causal-tl"}));
  EXPECT_EQ(masks({{"align", "top-left"}, {"window", "3,3"}}), (Labels{"win3.3-tl"}));
  // Without --causal, a window is asked for alone.
  EXPECT_EQ(expand(axes_of({{"window", "255,7"}, {"seqlen", "512"}})).size(), 1U);
}

TEST(Expand, GqaNeedsWholeGroups) {
  EXPECT_EQ(error_of(tiny_and({{"nheads", "33"}, {"nheads-kv", "2"}}))
                .rfind("heads_q 33 is not a multiple of heads_kv 2", 0),
            0U);
  EXPECT_EQ(error_of(tiny_and({{"nheads", "33"}, {"gqa-ratio", "2"}})),
            "nheads 33 is not a multiple of gqa-ratio 2");
  EXPECT_EQ(expand(axes_of(tiny_and({{"gqa-ratio", "4"}})))[0].heads_kv, 1);
}

TEST(Expand, EveryProblemOnce) {
  EXPECT_EQ(expand(axes_of(tiny_and({{"headdim", "64,64-64"}}))).size(), 1U);
}

TEST(Expand, RefusesWhatOverflowsOrNeverEnds) {
  EXPECT_NE(error_of(tiny_and({{"seqlen", "4096m"}})).find("overflows"), std::string::npos);
  EXPECT_EQ(error_of({{"seqlen", "1:1000:1"}, {"batch-size", "1:200:1"}}),
            "the axes give more than 100000 problems");
}

TEST(SetAxis, ALaterSpellingOfTheSameAxisWins) {
  Axes axes = axes_of({{"batch-size", "3"}, {"nheads", "5"}, {"nheads-kv", "5"}});
  set_axis(axes, "total-tokens", "8k", "--total-tokens");
  set_axis(axes, "hidden-size", "1k", "--hidden-size");
  set_axis(axes, "gqa-ratio", "2", "--gqa-ratio");
  set_axis(axes, "seqlen", "1k", "--seqlen");
  const Problem p = expand(axes).front();
  EXPECT_EQ(p.batch, 8);
  EXPECT_EQ(p.heads_q, 8);
  EXPECT_EQ(p.heads_kv, 4);
}

TEST(SetAxis, Options) {
  EXPECT_EQ(axes_of({{"option", "scale=block"}, {"option", "k=v"}}).options,
            (std::map<std::string, std::vector<std::string>>{{"k", {"v"}}, {"scale", {"block"}}}));
  for (const char* text : {"scale", "=x", "scale=", "a=b c", "a=../x", "a=\x1b"}) {
    EXPECT_THROW(axes_of({{"option", text}}), UsageError) << text;
  }
}

// The options of e4m3 are axes; problems of other types do not have them.
TEST(SetAxis, Fp8Options) {
  const std::string shape = "/b1.h4.kv4/q512.k512/d64/full";
  Axes axes = axes_of(
      tiny_and({{"dtype", "bf16,e4m3"}, {"fp8-scale", "tensor,block"}, {"fp8-accum", "all"}}));
  const std::vector<std::string> expected = {
      "x/fwd/bf16" + shape, "x/fwd/e4m3" + shape + "/scale=tensor", "x/fwd/e4m3" + shape,
      "x/fwd/e4m3" + shape + "/accum=fast/scale=tensor", "x/fwd/e4m3" + shape + "/accum=fast"};
  EXPECT_EQ(ids(axes), expected);
  // The same by name, and a later spelling wins.
  set_axis(axes, "option", "scale=tensor,scale=block", "--option");
  EXPECT_EQ(ids(axes), expected);
  set_axis(axes, "fp8-scale", "head", "--fp8-scale");
  EXPECT_EQ(axes.options.at("scale"), std::vector<std::string>{"head"});
  EXPECT_EQ(error_of({{"fp8-accum", "slow"}}), "--fp8-accum: unknown name 'slow'");
}

TEST(SetAxis, ErrorsNameTheFlag) {
  EXPECT_EQ(error_of({{"causal", "yes"}}), "--causal: 'yes' is not true, false or both");
  EXPECT_EQ(error_of({{"dtype", "bf61"}}), "--dtype: unknown name 'bf61'");
  EXPECT_EQ(error_of({{"align", "topleft"}}), "--align: unknown name 'topleft'");
  EXPECT_EQ(error_of({{"window", "255"}}), "--window: '255' has no right side");
  EXPECT_EQ(error_of({{"window", "255,-2"}}), "--window: '-2' is not positive");
  EXPECT_EQ(error_of({{"window", "1,2,3"}}), "--window: '2,3' is not a whole number");
  EXPECT_EQ(error_of({{"headdim", "64-"}}), "--headdim: '' is not a number");
  EXPECT_EQ(error_of({{"headdim", "-64"}}), "--headdim: '-64' is not positive");
  EXPECT_EQ(error_of({{"total-tokens", "1,2"}}), "--total-tokens: '1,2' is not a whole number");
  EXPECT_EQ(error_of({{"seqlne", "1"}}), "--seqlne: unknown axis 'seqlne'");
}

}  // namespace
}  // namespace rooflash
