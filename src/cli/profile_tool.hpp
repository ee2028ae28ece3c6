// rooflash profile --tool: a case under Nsight Compute or Nsight Systems.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sweep/plan.hpp"

namespace rooflash {

struct Context;

struct ToolFlags {
  std::string name;  // ncu | nsys; empty: none
  bool print = false;
};

struct ToolCase {
  Case one;
  std::string device;
  std::uint64_t seed = 1;
  std::string l2;
  std::string set;
  std::vector<std::string> metrics;
  std::string output;  // of the tool; empty: named after the case
};

// Prints the command line, or becomes it: on success that does not return. Throws UsageError, also
// where the tool is not on this machine.
int profile_with_tool(const Context& context, const ToolFlags& flags, const ToolCase& profiled);

}  // namespace rooflash
