#include "sweep/parse_case.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rooflash {
namespace {

// Every spelling that case_id() gives, and back; the axes of each hold that problem alone.
TEST(ParseCase, GivesBackEveryCase) {
  Axes axes;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"pass", "all"},
                                                        {"dtype", "all"},
                                                        {"headdim", "64,192-128"},
                                                        {"seqlen", "1,333"},
                                                        {"seqlen-q", "1,77"},
                                                        {"nheads", "8"},
                                                        {"nheads-kv", "1,8"},
                                                        {"batch-size", "3"},
                                                        {"distribution", "normal,peaky"}}) {
    set_axis(axes, name, text, name);
  }
  std::size_t count = 0;
  for (const char* option : {"", "scale=block,split=4"}) {
    if (*option != '\0') set_axis(axes, "option", option, "option");
    for (const char* align : {"bottom-right", "top-left"}) {
      set_axis(axes, "align", align, "align");
      for (const auto& window : {std::optional<std::pair<std::int64_t, std::int64_t>>(),
                                 {{255, 0}},
                                 {{kUnbounded, 16}},
                                 {{0, kUnbounded}}}) {
        axes.window = window;
        for (const Problem& problem : expand(axes)) {
          const std::string id = case_id("fa2", problem);
          const NamedCase named = parse_case_id(id);
          EXPECT_EQ(named.kernel, "fa2");
          EXPECT_EQ(named.problem, problem) << id;
          const std::vector<Problem> back = expand(axes_of(named));
          ASSERT_EQ(back.size(), 1U) << id;
          EXPECT_EQ(back.front(), problem) << id;
          ++count;
        }
      }
    }
  }
  EXPECT_GT(count, 1000U);
}

TEST(ParseCase, LeavesImpliedAxesToFollow) {
  Axes axes = axes_of(parse_case_id("fa2/fwd/bf16/b2.h16.kv4/q512.k512/d128/full"));
  set_axis(axes, "seqlen", "1k", "--seqlen");
  set_axis(axes, "nheads", "32", "--nheads");
  EXPECT_EQ(case_id("fa2", expand(axes).front()), "fa2/fwd/bf16/b2.h32.kv8/q1024.k1024/d128/full");
}

TEST(ParseCase, RefusesEveryOtherSpelling) {
  const auto message = [](std::string_view text) -> std::string {
    try {
      parse_case_id(text);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  const std::pair<const char*, const char*> cases[] = {
      {"", "1 parts of 7"},
      {"fa2", "1 parts of 7"},
      {"/fwd/bf16/b1.h1.kv1/q1.k1/d64/full", "the kernel is missing"},
      {"fa2/forward/bf16/b1.h1.kv1/q1.k1/d64/full", "'forward' is not a pass"},
      {"fa2/fwd/bfloat/b1.h1.kv1/q1.k1/d64/full", "'bfloat' is not a dtype"},
      {"fa2/fwd/bf16/b1.h1/q1.k1/d64/full", "'b1.h1' is not bN.hN.kvN"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.kx/d64/full", "'q1.kx' is not qN.kN"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1.k1/d64/full", "is not qN.kN"},
      {"fa2/fwd/bf16/b1.h1.kv1/q-1.k1/d64/full", "is not qN.kN"},
      {"fa2/fwd/bf16/b99999999999999999999.h1.kv1/q1.k1/d64/full", "is not bN.hN.kvN"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/64/full", "'64' is not dN"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d/full", "'d' is not dN"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/masked", "'masked' is not full"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/", "'' is not full"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/win1", "is not full"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/full/odd", "'odd' is not a distribution"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/full/peaky/peaky", "'peaky' is not NAME=VALUE"},
      {"fa2/fwd/bf16/b1.h3.kv2/q1.k1/d64/full", "heads_q 3 is not a multiple of heads_kv 2"},
      {"fa2/fwd/bf16/b0.h1.kv1/q1.k1/d64/full", "batch 0 is not positive"},
      {"fa2/fwd/bf16/b01.h1.kv1/q1.k1/d64/full", "it would be written fa2/fwd/bf16/b1"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64-64/full", "it would be written"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/full/normal", "it would be written"},
      {"fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/full/b=1/a=1", "it would be written"},
      {"f\x1b[2J/fwd/bf16/b1.h1.kv1/q1.k1/d64/full\n", "\\x1b[2J"},
  };
  for (const auto& [text, expected] : cases) {
    EXPECT_NE(message(text).find(expected), std::string::npos) << text << ": " << message(text);
  }
}

}  // namespace
}  // namespace rooflash
