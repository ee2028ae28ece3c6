// What a profile looks like: for the terminal, for machines, and the command lines of the tools.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/shell.hpp"
#include "fixture.hpp"
#include "profile/tool_command.hpp"

namespace rooflash {
namespace {

Profile sample() {
  return profile_of({{"memory.hbm_read_bytes", 268435456},
                     {"memory.hbm_pct", 43.21},
                     {"memory.gpu_time_ns", 1234567},
                     {"compute.tensor_pipe_pct", 65},
                     {"compute.sm_clock_hz", 1.755e9},
                     {"compute.occupancy_pct", 11.5},
                     {"compute.instructions", 123456789},
                     {"stalls.eligible_warps", 0.25}});
}

TEST(ProfileText, ShowsHeadSetsAndFindings) {
  const std::string text = profile_text(sample(), 100);
  for (const char* words :
       {"fa2/fwd/bf16/b2.h16.kv16/q8192.k8192/d128/full  [cuda:0]  NVIDIA H200 (GH100)  cold L2",
        "rooflash::fa2::forward<128>", "2112 blocks of 128 threads, 8.00 waves; 168 registers",
        "12 % theoretical: 2 blocks an SM, limited by shared memory; 12 % achieved",
        "memory  5 passes", "256 MiB  dram__bytes_read.sum", "43.2 %", "1.23 ms", "1755 MHz",
        "1.235e+08 inst", "0.25 warps", "n/a: not in this test", "findings",
        "1. Nearest its limit: the tensor cores",
        "at most 35 % of the time: 1 - tensor_pipe_pct / 100"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
}

TEST(ProfileText, KeepsToTheWidthWhereWordsAllow) {
  std::istringstream lines(profile_text(sample(), 60));
  std::string line;
  while (std::getline(lines, line)) {
    const bool one_word = line.find(' ', line.find_first_not_of(' ')) == std::string::npos;
    const bool metric = line.find("__") != std::string::npos;
    if (one_word || metric) continue;
    EXPECT_LE(line.size(), 60U) << line;
  }
}

TEST(ProfileText, ACaseThatDidNotRunSaysWhy) {
  CountedProfile failed = counted({});
  failed.row.status = Status::failed;
  failed.row.reason = "launch failed\x1b[2J";
  failed.groups.clear();
  const std::string text = profile_text(make_profile(metric_sets("GH100"), failed), 100);
  EXPECT_NE(text.find("failed: launch failed\\x1b[2J"), std::string::npos) << text;
  EXPECT_EQ(text.find("findings"), std::string::npos);
}

TEST(ProfileText, CountersThatFailSayWhyOnce) {
  CountedProfile denied = counted({});
  for (CountedGroup& group : denied.groups) {
    group = {"no_permission", "run as root", 0, {}, {}};
  }
  const std::string text = profile_text(make_profile(metric_sets("GH100"), denied), 100);
  EXPECT_NE(text.find("n/a: no_permission: run as root"), std::string::npos) << text;
  EXPECT_NE(text.find("smem  0 passes"), std::string::npos);
  EXPECT_EQ(text.find("findings"), std::string::npos);
}

TEST(ProfileJson, HoldsEveryMetricWithItsValueOrReason) {
  const auto json = nlohmann::json::parse(profile_json(sample()));
  EXPECT_EQ(json["profile"], 1);
  EXPECT_EQ(json["chip"], "GH100");
  EXPECT_EQ(json["cupti"], "libcupti.so.13, API 130001") << "no folder of the machine";
  EXPECT_EQ(json["row"]["case"], "fa2/fwd/bf16/b2.h16.kv16/q8192.k8192/d128/full");
  EXPECT_TRUE(json["row"]["time_us"].is_null());
  EXPECT_EQ(json["occupancy"]["limiter"], "shared memory");
  ASSERT_EQ(json["sets"].size(), 4U);
  std::size_t values = 0;
  for (const auto& set : json["sets"]) {
    for (const auto& metric : set["metrics"]) {
      EXPECT_NE(metric["value"].is_null(), !metric.contains("missing")) << metric;
      if (!metric["value"].is_null()) ++values;
    }
  }
  EXPECT_EQ(values, 8U);
  EXPECT_EQ(json["findings"][0]["gain_pct"], 35);
}

ToolCommand command_of(const std::string& tool) {
  return {tool, tool, "out dir/report", "cold", "all", {}, {"./roof flash", "run", "--profile"}};
}

std::string line_of(const ToolCommand& command) {
  return shell_command(tool_words(command));
}

TEST(ToolCommand, Ncu) {
  ToolCommand command = command_of("ncu");
  EXPECT_EQ(line_of(command),
            "ncu --target-processes all --nvtx --nvtx-include rooflash@timed/ --cache-control all "
            "--clock-control none --set full --force-overwrite --export 'out dir/report' "
            "'./roof flash' run --profile");
  command.l2 = "warm";
  command.set = "stalls";
  EXPECT_NE(line_of(command).find("--cache-control none --clock-control none --section "
                                  "SchedulerStats --section WarpStateStats"),
            std::string::npos);
  command.metrics = {"dram__bytes_read.sum", "sm__cycles_elapsed.max"};
  EXPECT_NE(line_of(command).find(" --metrics dram__bytes_read.sum,sm__cycles_elapsed.max "),
            std::string::npos);
  EXPECT_EQ(line_of(command).find("--section"), std::string::npos);
}

TEST(ToolCommand, EverySetHasSections) {
  for (const std::string& set : metric_set_names()) {
    ToolCommand command = command_of("ncu");
    command.set = set;
    EXPECT_NE(line_of(command).find("--section "), std::string::npos) << set;
  }
}

TEST(ToolCommand, NsysSpellsTheRangeTheOtherWayRound) {
  EXPECT_EQ(line_of(command_of("nsys")),
            "nsys profile --trace cuda,nvtx --capture-range nvtx --nvtx-capture timed@rooflash "
            "--capture-range-end stop --force-overwrite true --output 'out dir/report' "
            "'./roof flash' run --profile");
}

TEST(ToolCommand, ReportIsNamedAfterTheCase) {
  EXPECT_EQ(report_name("fa2/fwd/bf16/b1.h1.kv1/q1.k1/d64/full"),
            "fa2-fwd-bf16-b1.h1.kv1-q1.k1-d64-full");
}

}  // namespace
}  // namespace rooflash
