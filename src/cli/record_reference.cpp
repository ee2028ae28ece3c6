#include "cli/record_reference.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "cli/baseline_folder.hpp"
#include "cli/kept_runs.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/baseline.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLabelBytes = 40;

bool exists(const std::string& path) {
  std::error_code error;
  return fs::exists(path, error);
}

std::string joined(const std::set<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(printable(name));
  return fmt::format("{}", fmt::join(shown, ", "));
}

// How many runs back: 0 for "last", 1 for "prev", N for "last~N"; empty for anything else.
std::optional<int> runs_back(const std::string& name) {
  constexpr std::string_view kBack = "last~";
  if (name == "last") return 0;
  if (name == "prev") return 1;
  if (!name.starts_with(kBack)) return std::nullopt;
  const std::string digits = name.substr(kBack.size());
  int back = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), back);
  if (digits.empty() || parsed.ptr != digits.data() + digits.size() || parsed.ec != std::errc() ||
      back < 0) {
    throw UsageError(fmt::format("@{}: what stands after ~ is no number of runs", printable(name)),
                     "@last~2 is the run before @prev");
  }
  return back;
}

std::string kept_run(const std::string& name, int back) {
  if (back > kMostRunsBack) {
    throw UsageError(fmt::format("@{}: only the last {} runs are kept", name, kMostRunsBack + 1),
                     "keep records in files of their own: rooflash run -o FILE.json");
  }
  std::string path = kept_run_path(back);
  if (exists(path)) return path;
  throw UsageError(fmt::format("@{}: there is no such run: {} is not there", name, printable(path)),
                   "rooflash run keeps its record there when no -o is given");
}

std::string baseline_record(const std::string& name) {
  require_baseline_name(name);
  const std::string folder = baseline_folder("");
  const std::vector<BaselineFile> files = list_baselines(folder, name);
  if (files.size() == 1) return files.front().path;
  if (files.empty()) {
    std::set<std::string> known;
    for (const BaselineFile& file : list_baselines(folder)) {
      if (!runs_back(file.name)) known.insert("@" + file.name);
    }
    throw UsageError(fmt::format("@{}: there is no such run, and no such baseline in {}", name,
                                 printable(folder)),
                     known.empty()
                         ? "@last is the last run; rooflash baseline save NAME makes a baseline"
                         : fmt::format("@last is the last run; baselines: {}", joined(known)));
  }
  std::set<std::string> paths;
  for (const BaselineFile& file : files) paths.insert(file.path);
  throw UsageError(
      fmt::format("@{}: this baseline has {} records, by GPU and suite", name, files.size()),
      "name one of them: " + joined(paths));
}

std::string path_of(const std::string& text) {
  if (!text.starts_with('@') || exists(text)) return text;
  const std::string name = text.substr(1);
  if (const auto back = runs_back(name)) return kept_run(name, *back);
  return baseline_record(name);
}

}  // namespace

RecordReference find_record(const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || exists(text)) return {text, path_of(text), {}};
  const std::string label = text.substr(0, equals);
  const std::string rest = text.substr(equals + 1);
  // A folder before the sign: a path that is not there, not a label.
  if (label.find('/') != std::string::npos) return {text, text, {}};
  if (label.empty() || label.size() > kMaxLabelBytes || printable(label) != label) {
    throw UsageError(fmt::format("{}: the label before = must have 1 to {} bytes, and nothing in "
                                 "it that is not shown",
                                 printable(text), kMaxLabelBytes),
                     "for example: before=old.json after=new.json");
  }
  if (rest.empty()) {
    throw UsageError(fmt::format("{}: there is no record after =", printable(text)));
  }
  return {text, path_of(rest), label};
}

std::vector<RecordReference> find_records(const std::vector<std::string>& texts) {
  std::vector<RecordReference> found;
  for (const std::string& text : texts) {
    RecordReference next = find_record(text);
    const bool twice = std::any_of(found.begin(), found.end(), [&](const RecordReference& one) {
      return !one.label.empty() && one.label == next.label;
    });
    if (twice) throw UsageError(fmt::format("two records have the label {}", next.label));
    const bool again = std::any_of(found.begin(), found.end(), [&](const RecordReference& one) {
      return next.path == "-" && one.path == "-";
    });
    if (again) {
      throw UsageError("the standard input is named twice", "it holds one record");
    }
    found.push_back(std::move(next));
  }
  return found;
}

std::vector<std::string> paths_of(const std::vector<RecordReference>& references) {
  std::vector<std::string> paths;
  for (const RecordReference& reference : references) paths.push_back(reference.path);
  return paths;
}

}  // namespace rooflash
