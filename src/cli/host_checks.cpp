#include "cli/host_checks.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "cli/outputs.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/outer_tool.hpp"
#include "core/units.hpp"
#include "worker/driver/process.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;
using enum CheckStatus;

constexpr double kLittleSpaceBytes = 1024.0 * 1024 * 1024;
constexpr double kNoSpaceBytes = 64.0 * 1024 * 1024;  // a record of 10,000 rows with its journal

DoctorCheck build_check() {
  const BuildInfo& build = build_info();
  return {"build", ok, fmt::format("{} {}, {}", build.version, build.commit, build.build), ""};
}

DoctorCheck worker_check() {
  try {
    return {"worker", ok, worker_path(), ""};
  } catch (const Error& error) {
    return {"worker", fail, error.what(), error.hint()};
  }
}

// Whether files can be written to `folder`, or to the nearest folder above it that is there.
DoctorCheck folder_check(const char* id, CheckStatus fault, const std::string& folder) {
  std::error_code error;
  fs::path there = fs::absolute(folder, error);
  while (!fs::exists(there, error) && there.has_relative_path()) there = there.parent_path();
  if (access(there.c_str(), W_OK | X_OK) != 0) {
    return {id, fault, fmt::format("cannot write to {}", there.string()),
            "name a file elsewhere with -o, or set XDG_STATE_HOME"};
  }
  const fs::space_info space = fs::space(there, error);
  if (error) return {id, warn, "free space not known: " + error.message(), "look at df -h"};
  const auto free = static_cast<double>(space.available);
  DoctorCheck check{id, ok, fmt::format("{}, {} free", folder, format_gib(free)), ""};
  if (free < kLittleSpaceBytes) {
    check.status = free < kNoSpaceBytes ? fault : warn;
    check.fix = "free space there, or name a file elsewhere with -o";
  }
  return check;
}

DoctorCheck runs_folder_check() {
  const std::string folder = state_folder();
  if (!folder.empty()) return folder_check("runs_folder", fail, folder);
  return {"runs_folder", warn, "HOME and XDG_STATE_HOME are not set: runs are kept nowhere",
          "name a file with -o in every run"};
}

DoctorCheck tool_check() {
  const std::string tool = outer_tool();
  if (tool.empty()) return {"tool", ok, "no profiler is attached", ""};
  return {"tool", fail,
          "running under " + tool +
              ": times are not those of a run alone, and the counters are the tool's",
          "run without it"};
}

// The control daemon's pipe stays where it was put, whoever asks.
DoctorCheck mps_check() {
  const char* named = std::getenv("CUDA_MPS_PIPE_DIRECTORY");
  const fs::path pipes = named != nullptr && *named != '\0' ? named : "/tmp/nvidia-mps";
  std::error_code error;
  if (!fs::exists(pipes / "control", error)) return {"mps", ok, "not running", ""};
  return {"mps", fail,
          fmt::format("the MPS daemon is running ({}): other clients share the GPU unseen, and "
                      "counters do not work under it",
                      pipes.string()),
          "echo quit | nvidia-cuda-mps-control"};
}

}  // namespace

std::vector<DoctorCheck> host_checks() {
  return {build_check(),
          worker_check(),
          tool_check(),
          runs_folder_check(),
          folder_check("current_folder", warn, "."),
          mps_check()};
}

}  // namespace rooflash
