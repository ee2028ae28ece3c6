#include "cli/baseline_folder.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "cli/comparison.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/match.hpp"

namespace rooflash {
namespace {

[[noreturn]] void fail_missing(const std::string& what, const std::set<std::string>& known,
                               const std::string& hint) {
  std::vector<std::string> shown;
  for (const std::string& one : known) shown.push_back(printable(one));
  throw Error(ExitCode::not_comparable, what,
              known.empty() ? hint : fmt::format("there is: {}. {}", fmt::join(shown, ", "), hint));
}

std::set<std::string> names_of(const std::vector<BaselineFile>& files,
                               std::string BaselineFile::*part) {
  std::set<std::string> names;
  for (const BaselineFile& file : files) names.insert(file.*part);
  return names;
}

}  // namespace

std::string baseline_folder(const std::string& text) {
  if (!text.empty()) return text;
  const char* set = std::getenv("ROOFLASH_BASELINE_DIR");
  return set != nullptr && *set != '\0' ? set : "baselines";
}

BaselineFile find_baseline(const std::string& folder, const std::string& name,
                           const std::string& device_class, const std::string& suite) {
  BaselineFile file = baseline_file(folder, name, device_class, suite);
  std::error_code error;
  if (std::filesystem::exists(file.path, error)) return file;
  const std::string save = fmt::format("rooflash baseline save {} RECORD.json makes one", name);
  std::vector<BaselineFile> files = list_baselines(folder, name);
  if (files.empty()) {
    fail_missing(fmt::format("there is no baseline '{}' in {}", name, printable(folder)),
                 names_of(list_baselines(folder), &BaselineFile::name), save);
  }
  const std::set<std::string> gpus = names_of(files, &BaselineFile::gpu);
  std::erase_if(files, [&](const BaselineFile& one) { return one.gpu != file.gpu; });
  if (files.empty()) {
    fail_missing(
        fmt::format("baseline '{}' holds nothing of {}: other GPU", name, printable(device_class)),
        gpus, save);
  }
  fail_missing(fmt::format("baseline '{}' holds nothing of suite '{}' on {}: other suite", name,
                           printable(suite), printable(device_class)),
               names_of(files, &BaselineFile::suite), save);
}

Comparison compare_with_baseline(const std::string& folder, const std::string& name,
                                 const Record& candidate, const std::vector<std::string>& filters,
                                 const CompareRules& rules) {
  std::set<std::string> classes;
  for (const Row& row : candidate.rows) classes.insert(device_class(candidate, row));
  Comparison all;
  for (const std::string& device : classes) {
    const BaselineFile file = find_baseline(folder, name, device, candidate.suite);
    const Record stored = read_filtered(file.path, filters);
    if (const std::string reason = baseline_mismatch(stored, candidate); !reason.empty()) {
      throw Error(ExitCode::not_comparable,
                  fmt::format("{} does not fit: {}", printable(file.path), reason),
                  fmt::format("run with --seed {}, or save another baseline", stored.seed));
    }
    Record own = candidate;
    std::erase_if(own.rows, [&](const Row& row) { return device_class(candidate, row) != device; });
    std::erase_if(own.environment.devices, [&](const DeviceInfo& info) {
      return std::none_of(own.rows.begin(), own.rows.end(),
                          [&](const Row& row) { return row.device == info.device; });
    });
    Comparison one = compare(stored, own, rules);
    const auto append = [](auto& to, auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append(all.cases, one.cases);
    append(all.families, one.families);
    append(all.differences, one.differences);
    all.without_result += one.without_result;
    all.left_out += one.left_out;
  }
  return all;
}

}  // namespace rooflash
