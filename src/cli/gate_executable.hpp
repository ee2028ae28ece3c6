// The rooflash executables that a gate runs.
#pragma once

#include <sys/wait.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace rooflash {

inline constexpr auto kAnswerTime = std::chrono::seconds(30);  // for --version and a plan

struct Executable {
  std::string path;
  std::string label;       // "old" or "new", in file names and messages
  bool own_worker = true;  // takes the worker beside it, whatever ROOFLASH_WORKER says
  std::string version;     // its first line of --version
};

// The executable at `path`, which must be a rooflash: throws UsageError where there is no such
// file, it cannot be run, or does not answer --version as one does.
Executable require_executable(const std::string& path, const std::string& label);
// This very executable.
Executable this_executable(const std::string& label);

struct Ended {
  std::vector<std::string> lines;  // of stdout
  std::string what;                // its error message; "" where it printed none
  int wait_status = 0;

  int code() const { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : -1; }
  // "exit code 2: --seqlen: ...", "SIGSEGV"
  std::string text() const;
};

// Runs `executable` to its end, however long that takes where `limit` is empty. Throws
// Error(interrupted) on a signal to this process, and UsageError past the limit.
Ended run_to_end(const Executable& executable, const std::vector<std::string>& words,
                 std::optional<std::chrono::steady_clock::duration> limit);

}  // namespace rooflash
