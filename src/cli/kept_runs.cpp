#include "cli/kept_runs.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/outputs.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/reader.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

// A record that a run left when it was interrupted.
bool is_unfinished(const std::string& path) {
  try {
    return !read_record(path).complete;
  } catch (const UsageError&) {
    return false;  // no record, or not one that can be gone on with
  }
}

}  // namespace

std::string kept_run_path(int back) {
  const std::string folder = state_folder();
  if (folder.empty()) {
    throw UsageError("there is no place where runs are kept: HOME and XDG_STATE_HOME are not set",
                     "name a file with -o");
  }
  return folder + "/runs/" + (back == 0 ? "last.json" : fmt::format("last-{}.json", back));
}

std::string keep_previous_run(bool resumed) {
  const std::string last = kept_run_path(0);
  std::error_code error;
  if (!fs::exists(last, error) || (resumed && is_unfinished(last))) return {};
  for (int back = kMostRunsBack; back > 1; --back) {
    const std::string from = kept_run_path(back - 1);
    if (fs::exists(from, error)) fs::rename(from, kept_run_path(back), error);
    if (error) return fmt::format("cannot move {}: {}", printable(from), error.message());
  }
  const std::string previous = kept_run_path(1);
  fs::remove(previous, error);
  // Where a file cannot have two names, a copy.
  fs::create_hard_link(last, previous, error);
  if (error) fs::copy_file(last, previous, error);
  return error ? fmt::format("cannot keep {}: {}", printable(last), error.message()) : "";
}

}  // namespace rooflash
