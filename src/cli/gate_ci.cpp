#include "cli/gate_ci.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxAnnotations = 10;  // of a kind in a step

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// Of a workflow command: a line end would begin another one.
std::string escape_data(std::string_view text, bool property) {
  std::string out;
  for (const char c : text) {
    const bool special = c == '%' || c == '\r' || c == '\n' || (property && (c == ':' || c == ','));
    out += special ? fmt::format("%{:02X}", static_cast<int>(c)) : std::string(1, c);
  }
  return out;
}

std::string annotation(std::string_view kind, std::string_view title, std::string_view text) {
  return fmt::format("::{} title={}::{}\n", kind, escape_data(printable(title, 300), true),
                     escape_data(printable(text, 1000), false));
}

std::string annotations(std::string_view kind, const std::vector<const CaseComparison*>& cases) {
  std::string text;
  const bool all = cases.size() <= kMaxAnnotations;
  const std::size_t shown = all ? cases.size() : kMaxAnnotations - 1;
  for (std::size_t i = 0; i < shown; ++i) {
    text += annotation(kind, cases[i]->case_id, case_message(*cases[i]));
  }
  if (!all) {
    text += annotation(kind, "rooflash gate",
                       fmt::format("{} more; see the log", cases.size() - shown));
  }
  return text;
}

// Appends, as the runner's files are shared by all steps of a job.
void append(const char* name, std::string_view content) {
  const std::string path = variable(name);
  if (path.empty()) {
    print_message(fmt::format("warning: {} is not set: nothing is written to it", name));
    return;
  }
  const int fd = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  bool written = fd >= 0;
  while (written && !content.empty()) {
    const ssize_t put = write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    written = put >= 0;
    if (written) content.remove_prefix(static_cast<std::size_t>(put));
  }
  const int error = errno;
  if (fd >= 0) close(fd);
  // The verdict stands without it, and its exit code must not change.
  if (!written) {
    print_message(fmt::format("warning: cannot write {} ({}): {}; --ci none leaves it out",
                              printable(path), name, std::strerror(error)));
  }
}

std::size_t size_of_file(const char* name) {
  struct stat status {};
  return stat(variable(name).c_str(), &status) == 0 ? static_cast<std::size_t>(status.st_size) : 0;
}

}  // namespace

Ci choose_ci(const std::string& text) {
  require_choice(text, "--ci", {"none", "auto", "github", "gitlab"});
  const auto is_set = [](const char* name) { return !variable(name).empty(); };
  if (text == "github" || (text == "auto" && is_set("GITHUB_ACTIONS"))) return Ci::github;
  if (text == "gitlab" || (text == "auto" && is_set("GITLAB_CI"))) return Ci::gitlab;
  return Ci::none;
}

std::string github_annotations(const GateResult& result) {
  std::vector<const CaseComparison*> errors;
  std::vector<const CaseComparison*> warnings;
  for (const CaseComparison* one : by_weight(result.comparison)) {
    switch (one->verdict) {
      case Verdict::wrong:
      case Verdict::failed:
      case Verdict::gone:
      case Verdict::slower:
      case Verdict::not_comparable:
        errors.push_back(one);
        break;
      case Verdict::unsure:
        warnings.push_back(one);
        break;
      case Verdict::faster:
      case Verdict::fresh:
      case Verdict::same:
        break;
    }
  }
  std::string text = annotations("error", errors) + annotations("warning", warnings);
  // No case stands for a slow family, or for nothing compared.
  if (errors.empty() && result.code != ExitCode::ok) {
    text += annotation("error", "rooflash gate", gate_sentence(result));
  }
  return text;
}

void report_to_ci(Ci ci, const GateResult& result) {
  if (ci != Ci::github) return;
  print_result(github_annotations(result));
  // What earlier commands of the step wrote counts too; past the limit the whole summary is lost.
  const std::size_t used = size_of_file("GITHUB_STEP_SUMMARY");
  if (used < kMaxSummaryBytes) {
    append("GITHUB_STEP_SUMMARY", verdict_markdown(result, kMaxSummaryBytes - used));
  } else {
    print_message("warning: the step summary is full: nothing is added to it");
  }
  append("GITHUB_OUTPUT",
         fmt::format("verdict={}\nexit_code={}\nslower={}\n",
                     result.code == ExitCode::ok ? "passed" : "failed",
                     static_cast<int>(result.code), count(result.comparison, Verdict::slower)));
}

}  // namespace rooflash
