#include "core/outer_tool.hpp"

#include <array>
#include <cstdlib>

namespace rooflash {
namespace {

struct Trace {
  const char* variable;
  const char* tool;
};

// One variable a tool is enough.
constexpr std::array<Trace, 4> kNamed{{
    {"NV_COMPUTE_PROFILER_PERFWORKS_DIR", "Nsight Compute"},
    {"NSYS_PROFILING_SESSION_ID", "Nsight Systems"},
    {"NV_SANITIZER_INJECTION_PORT_RANGE_BEGIN", "compute-sanitizer"},
    {"NVPROF_ID", "nvprof"},
}};
// Shared by several tools: they name one only where none of the above does.
constexpr std::array<Trace, 4> kShared{{
    {"NV_NSIGHT_INJECTION_TRANSPORT_TYPE", "an Nsight tool"},
    {"NV_NSIGHT_INJECTION_PORT_BASE", "an Nsight tool"},
    {"NV_TPS_LAUNCH_TOKEN", "an Nsight tool"},
    {"CUDA_INJECTION64_PATH", "the tool in CUDA_INJECTION64_PATH"},
}};

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::string outer_tool() {
  std::string tools;
  for (const Trace& trace : kNamed) {
    if (is_set(trace.variable)) tools += (tools.empty() ? "" : " and ") + std::string(trace.tool);
  }
  if (!tools.empty()) return tools;
  for (const Trace& trace : kShared) {
    if (is_set(trace.variable)) return trace.tool;
  }
  return {};
}

}  // namespace rooflash
