// The command lines of Nsight Compute and Nsight Systems for one case.
#pragma once

#include <string>
#include <vector>

namespace rooflash {

struct ToolCommand {
  std::string tool;                  // ncu | nsys
  std::string program;               // its path, or its name where it is not on this machine
  std::string report;                // file of the report, without extension
  std::string l2;                    // cold | warm
  std::string set;                   // ncu: a set of metric_set_names(), or "all"
  std::vector<std::string> metrics;  // ncu: raw names in place of the set
  std::vector<std::string> run;      // `rooflash run --profile ...`, unquoted
};

// The words of the whole command, unquoted. Both tools are told the same range, rooflash's `timed`,
// which holds the one measured launch; they spell it in opposite order.
std::vector<std::string> tool_words(const ToolCommand& command);

// `case_id` as the name of a file: "fa2-fwd-bf16-b2.h16.kv16-q8192.k8192-d128-full".
std::string report_name(const std::string& case_id);

}  // namespace rooflash
