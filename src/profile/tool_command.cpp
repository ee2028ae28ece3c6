#include "profile/tool_command.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rooflash {
namespace {

// Nsight Compute's sections that show what a set of ours shows.
std::vector<std::string> sections(const std::string& set) {
  if (set == "memory") return {"SpeedOfLight", "MemoryWorkloadAnalysis"};
  if (set == "compute") {
    return {"SpeedOfLight", "ComputeWorkloadAnalysis", "LaunchStats", "Occupancy"};
  }
  if (set == "stalls") return {"SchedulerStats", "WarpStateStats", "SourceCounters"};
  return {"MemoryWorkloadAnalysis", "MemoryWorkloadAnalysis_Tables"};
}

void add_ncu(const ToolCommand& command, std::vector<std::string>& words) {
  const auto add = [&](std::initializer_list<const char*> more) {
    words.insert(words.end(), more.begin(), more.end());
  };
  add({"--target-processes", "all", "--nvtx", "--nvtx-include", "rooflash@timed/"});
  // ncu replays the launch for each of its passes. A flush of ours before the first one would leave
  // the others warm, so that cold is left to ncu.
  add({"--cache-control", command.l2 == "cold" ? "all" : "none", "--clock-control", "none"});
  if (!command.metrics.empty()) {
    words.emplace_back("--metrics");
    words.push_back(fmt::format("{}", fmt::join(command.metrics, ",")));
  } else if (command.set == "all") {
    add({"--set", "full"});
  } else {
    for (const std::string& section : sections(command.set)) {
      words.emplace_back("--section");
      words.push_back(section);
    }
  }
  add({"--force-overwrite", "--export"});
  words.push_back(command.report);
}

void add_nsys(const ToolCommand& command, std::vector<std::string>& words) {
  for (const char* word :
       {"profile", "--trace", "cuda,nvtx", "--capture-range", "nvtx", "--nvtx-capture",
        "timed@rooflash", "--capture-range-end", "stop", "--force-overwrite", "true", "--output"}) {
    words.emplace_back(word);
  }
  words.push_back(command.report);
}

}  // namespace

std::vector<std::string> tool_words(const ToolCommand& command) {
  std::vector<std::string> words{command.program};
  if (command.tool == "ncu") {
    add_ncu(command, words);
  } else {
    add_nsys(command, words);
  }
  words.insert(words.end(), command.run.begin(), command.run.end());
  return words;
}

std::string report_name(const std::string& case_id) {
  std::string name = case_id;
  std::replace(name.begin(), name.end(), '/', '-');
  return name;
}

}  // namespace rooflash
