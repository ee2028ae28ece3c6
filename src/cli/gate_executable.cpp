#include "cli/gate_executable.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "core/error.hpp"
#include "core/units.hpp"
#include "worker/driver/interrupt.hpp"
#include "worker/driver/process.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;
using std::chrono::steady_clock;

constexpr std::string_view kErrorMark = "rooflash: error: ";

std::string error_message(const std::string& text) {
  const std::size_t at = text.rfind(kErrorMark);
  if (at == std::string::npos) return {};
  const std::size_t begin = at + kErrorMark.size();
  return printable(std::string_view(text).substr(begin, text.find('\n', begin) - begin), 1000);
}

[[noreturn]] void fail_interrupted(const std::string& hint) {
  throw Error(ExitCode::interrupted, fmt::format("stopped by SIG{}", sigabbrev_np(stop_signal())),
              hint);
}

}  // namespace

std::string Ended::text() const {
  const std::string how = WorkerProcess::describe(wait_status);
  return what.empty() ? how : fmt::format("{}: {}", how, what);
}

Ended run_to_end(const Executable& executable, const std::vector<std::string>& words,
                 std::optional<steady_clock::duration> limit) {
  std::vector<std::string> without;
  if (executable.own_worker) without.emplace_back("ROOFLASH_WORKER");
  WorkerProcess process(executable.path, words, without);
  process.close_stdin();
  const auto start = steady_clock::now();
  Ended ended;
  while (process.out_fd() >= 0) {
    auto line =
        process.wait_line(limit ? start + *limit : steady_clock::now() + std::chrono::hours(1));
    if (line) ended.lines.push_back(std::move(*line));
    if (stop_signal() != 0) {
      process.kill();
      fail_interrupted("repeat the command with --resume: the finished rounds are kept");
    }
    if (limit && steady_clock::now() - start > *limit) {
      process.kill();
      throw UsageError(fmt::format(
          "{} gave no answer to {} within {} s", printable(executable.path), words.front(),
          std::chrono::duration_cast<std::chrono::seconds>(*limit).count()));
    }
  }
  while (auto line = process.next_line()) ended.lines.push_back(std::move(*line));
  ended.wait_status = process.finish(steady_clock::now() + kAnswerTime);
  ended.what = error_message(process.stderr_text());
  return ended;
}

Executable require_executable(const std::string& path, const std::string& label) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    throw UsageError(fmt::format("{} is a folder, not a rooflash executable", printable(path)),
                     "name the file in it");
  }
  if (access(path.c_str(), X_OK) != 0) {
    throw UsageError(fmt::format("{} cannot be run: {}", printable(path), std::strerror(errno)),
                     "give the path of the rooflash executable to hold against");
  }
  Executable executable{fs::absolute(path).string(), label, true, {}};
  const Ended ended = run_to_end(executable, {"--version"}, kAnswerTime);
  if (ended.code() != 0 || ended.lines.empty() || !ended.lines.front().starts_with("rooflash ")) {
    throw UsageError(
        fmt::format("{} is no rooflash: it does not answer --version as one{}", printable(path),
                    ended.text().empty() ? "" : " (" + ended.text() + ")"),
        "give the path of the rooflash executable to hold against");
  }
  executable.version = printable(ended.lines.front());
  return executable;
}

Executable this_executable(const std::string& label) {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  if (error) {
    throw Error(ExitCode::incomplete, "cannot find this executable: " + error.message());
  }
  Executable executable{path.string(), label, false, {}};
  const Ended ended = run_to_end(executable, {"--version"}, kAnswerTime);
  if (!ended.lines.empty()) executable.version = ended.lines.front();
  return executable;
}

}  // namespace rooflash
