#include "sweep/repro.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "sweep/axes.hpp"

namespace rooflash {
namespace {

// Runs the command's flags through the axis parser, as `rooflash run` does.
std::vector<Problem> problems_of(const std::string& command) {
  std::istringstream words(command);
  std::string word;
  words >> word >> word;  // rooflash run
  Axes axes;
  while (words >> word) {
    const std::string name = word.substr(2);
    if (name == "fwd" || name == "bwd") {
      set_axis(axes, "pass", name, word);
      continue;
    }
    std::string value;
    words >> value;
    set_axis(axes, name, value, word);
  }
  return expand(axes);
}

TEST(ReproCommand, SpellsEveryAxis) {
  Problem p;
  p.batch = 4;
  p.heads_q = 16;
  p.heads_kv = 4;
  p.seqlen_q = 1;
  p.seqlen_kv = 8192;
  p.headdim = p.headdim_v = 128;
  p.mask.kind = MaskKind::causal;
  EXPECT_EQ(repro_command("fa2", p, "cuda:0"),
            "rooflash run --kernel fa2 --fwd --dtype bf16 --batch-size 4 --nheads 16 --nheads-kv 4 "
            "--seqlen 8192 --seqlen-q 1 --headdim 128 --headdim-v 128 --causal true "
            "--align bottom-right --distribution normal --device cuda:0");
}

TEST(ReproCommand, GivesBackExactlyItsProblem) {
  Axes axes;
  for (const auto& [name, text] :
       std::vector<std::pair<std::string, std::string>>{{"pass", "all"},
                                                        {"dtype", "all"},
                                                        {"headdim", "64,192-128"},
                                                        {"seqlen", "1,333,32k"},
                                                        {"seqlen-q", "1,77"},
                                                        {"nheads", "8"},
                                                        {"nheads-kv", "1,8"},
                                                        {"batch-size", "1,3"},
                                                        {"distribution", "normal,peaky"},
                                                        {"option", "scale=block"}}) {
    set_axis(axes, name, text, name);
  }
  std::size_t checked = 0;
  for (const char* align : {"bottom-right", "top-left"}) {
    for (const char* window : {"", "255,0", "0,5", "inf,5", "7,inf"}) {
      Axes masked = axes;
      set_axis(masked, "align", align, "align");
      set_axis(masked, "causal", "both", "causal");
      if (*window != '\0') set_axis(masked, "window", window, "window");
      for (const Problem& p : expand(masked)) {
        const std::vector<Problem> again = problems_of(repro_command("fa2", p, "cuda:0"));
        ASSERT_EQ(again.size(), 1U) << repro_command("fa2", p, "cuda:0");
        ASSERT_EQ(again[0], p) << repro_command("fa2", p, "cuda:0");
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 5000U);
}

TEST(ReproCommand, QuotesForTheShell) {
  EXPECT_NE(repro_command("a b;$(x)'", Problem{}, "cuda:0").find("--kernel 'a b;$(x)'\\''' "),
            std::string::npos);
}

}  // namespace
}  // namespace rooflash
