#include "gate/baseline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>

#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/units.hpp"
#include "gate/match.hpp"
#include "gate/rounds.hpp"
#include "gate/verdict.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".json";
constexpr std::size_t kLongestName = 100;

bool is_letter_or_digit(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// What must be equal between two rows of one case, as text.
std::string identity(const Record& record, const Row& row) {
  std::string text = fmt::format("{}|{}|{}|{}", row.case_id, device_class(record, row),
                                 row.definition_hash, row.model.convention);
  if (row.time_us) {
    text += fmt::format("|{}|{}|{}", row.time_us->l2, row.time_us->power, row.time_us->timer);
  }
  return text;
}

// Whether each measured time of `next` is one of `stored`, to the last digit: a record that is
// added twice would pass for twice the rounds. Simulated times are alike by right.
bool holds_all_of(const Record& stored, const Record& next) {
  const auto time_of = [](const Row& row) {
    const TimeUs& time = *row.time_us;
    return std::tuple(row.case_id, time.median, time.min, time.n, time.ci95_low, time.ci95_high);
  };
  const auto measured = [](const Row& row) { return row.time_us && !row.simulated; };
  std::set<decltype(time_of(next.rows.front()))> known;
  for (const Row& row : stored.rows) {
    if (measured(row)) known.insert(time_of(row));
  }
  bool any = false;
  for (const Row& row : next.rows) {
    if (!measured(row)) continue;
    if (!known.contains(time_of(row))) return false;
    any = true;
  }
  return any;
}

}  // namespace

void require_baseline_name(const std::string& name) {
  const bool plain = !name.empty() && name.size() <= kLongestName && name.front() != '.' &&
                     std::all_of(name.begin(), name.end(), [](char c) {
                       return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
                     });
  if (plain) return;
  throw UsageError(fmt::format("'{}' is no name for a baseline", printable(name)),
                   "use letters, digits, '.', '_' and '-', and no '.' in front");
}

std::string file_name_of(std::string_view text) {
  std::string name;
  for (const char c : text.substr(0, kLongestName)) {
    if (is_letter_or_digit(c)) {
      name += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  if (!name.empty() && name.back() == '-') name.pop_back();
  return name.empty() ? "unnamed" : name;
}

BaselineFile baseline_file(const std::string& folder, const std::string& name,
                           const std::string& device_class, const std::string& suite) {
  BaselineFile file{name, file_name_of(device_class), file_name_of(suite), {}};
  file.path =
      (fs::path(folder) / name / file.gpu / (file.suite + std::string(kExtension))).string();
  return file;
}

std::vector<BaselineFile> list_baselines(const std::string& folder, const std::string& name) {
  std::vector<BaselineFile> files;
  const fs::path root = name.empty() ? fs::path(folder) : fs::path(folder) / name;
  std::error_code error;
  for (fs::recursive_directory_iterator at(root, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path path = at->path();
    const fs::path below = path.lexically_relative(folder);
    if (std::distance(below.begin(), below.end()) != 3) continue;
    at.disable_recursion_pending();
    if (path.extension() != kExtension) continue;
    files.push_back({below.begin()->string(), std::next(below.begin())->string(),
                     path.stem().string(), path.string()});
  }
  std::sort(files.begin(), files.end(),
            [](const BaselineFile& a, const BaselineFile& b) { return a.path < b.path; });
  return files;
}

std::vector<BaselinePart> baseline_parts(const Record& record) {
  std::map<std::string, Record> parts;
  for (const Row& row : record.rows) {
    const std::string device = device_class(record, row);
    auto part = parts.find(device);
    if (part == parts.end()) {
      part = parts.emplace(device, record).first;
      part->second.rows.clear();
    }
    part->second.rows.push_back(row);
  }
  std::vector<BaselinePart> split;
  for (auto& [device, part] : parts) {
    std::set<std::string> used;
    for (const Row& row : part.rows) used.insert(row.device);
    std::erase_if(part.environment.devices,
                  [&](const DeviceInfo& one) { return !used.contains(one.device); });
    std::erase_if(part.ceilings, [&](const Ceilings& one) { return !used.contains(one.device); });
    thin_samples(part);
    keep_last_rounds(part, kKeptRounds);
    split.push_back({device, std::move(part)});
  }
  return split;
}

std::string add_to_baseline(Record& stored, const Record& next) {
  if (std::string reason = baseline_mismatch(stored, next); !reason.empty()) return reason;
  std::map<std::string, std::string> known;
  for (const Row& row : stored.rows) known[row.case_id] = identity(stored, row);
  for (const Row& row : next.rows) {
    const auto one = known.find(row.case_id);
    if (one != known.end() && one->second != identity(next, row)) {
      return fmt::format("{} is defined or measured in another way", row.case_id);
    }
  }
  if (holds_all_of(stored, next)) return "it holds these rounds already; measure new ones";
  Record merged = next;
  merged.rows.clear();
  add_rounds(merged, stored, 0);
  add_rounds(merged, next, end_of_rounds(stored));
  thin_samples(merged);
  keep_last_rounds(merged, kKeptRounds);
  stored = std::move(merged);
  return {};
}

std::string unfit_for_baseline(const Record& record) {
  if (!record.complete) return "it is of an interrupted run";
  bool timed = false;
  for (const Row& row : record.rows) {
    const std::string reason = unfit_reason(row);
    if (!reason.empty()) return fmt::format("{}: {}", row.case_id, reason);
    timed = timed || row.time_us.has_value();
  }
  return timed ? "" : "no row of it has a time";
}

std::string baseline_mismatch(const Record& stored, const Record& candidate) {
  if (stored.seed == candidate.seed) return {};
  return fmt::format("other seed of the inputs: base {}, new {}", stored.seed, candidate.seed);
}

std::string fingerprint(const Record& record) {
  std::set<std::string> identities;
  for (const Row& row : record.rows) identities.insert(identity(record, row));
  std::string text = fmt::format("{}|{}", record.suite, record.seed);
  for (const std::string& one : identities) text += "\n" + one;
  return hash_hex(text);
}

}  // namespace rooflash
