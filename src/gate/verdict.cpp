#include "gate/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace rooflash {
namespace {

template <typename Predicate>
const Row* first_of(const Rows& rows, Predicate predicate) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [&](const Row* row) { return predicate(*row); });
  return found == rows.end() ? nullptr : *found;
}

const Row* first_with(const Rows& rows, std::initializer_list<Status> statuses) {
  return first_of(rows, [&](const Row& row) {
    return std::find(statuses.begin(), statuses.end(), row.status) != statuses.end();
  });
}

bool all_ok(const Rows& rows) {
  return !rows.empty() && !first_of(rows, [](const Row& row) { return row.status != Status::ok; });
}

// Why a result must not be believed; "" where it may.
std::string distrust(const Rows& rows) {
  if (first_of(rows, [](const Row& row) {
        return row.verify.status != "passed" && row.verify.status != "reduced";
      })) {
    return "not verified";
  }
  if (first_of(rows, [](const Row& row) {
        return std::find(row.flags.begin(), row.flags.end(), "implausible") != row.flags.end();
      })) {
    return "implausible: faster than the card can be";
  }
  return {};
}

std::string why(const Row& row) {
  return fmt::format("{}: {}", to_string(row.status), row.reason);
}

// What the new rows say by themselves; empty where they are fit to be compared. Rows that are
// unsupported or out of memory only count where the base has a result.
std::optional<Ruling> judge_candidate(const Match& match) {
  const Rows& rows = match.candidate;
  if (rows.empty()) return Ruling{Verdict::gone, {}};
  if (const Row* row = first_with(rows, {Status::wrong}))
    return Ruling{Verdict::wrong, row->reason};
  if (const Row* row = first_with(
          rows, {Status::failed, Status::crashed, Status::timeout, Status::not_run, Status::oom})) {
    return Ruling{Verdict::failed, why(*row)};
  }
  if (const Row* row = first_with(rows, {Status::unsupported})) {
    return Ruling{Verdict::gone, why(*row)};
  }
  if (std::string reason = distrust(rows); !reason.empty()) {
    return Ruling{Verdict::failed, std::move(reason)};
  }
  return std::nullopt;
}

// How the rows were defined and measured must be one and the same on both sides.
std::string settings_difference(const Match& match) {
  using Setting = std::string (*)(const Row&);
  static constexpr std::pair<const char*, Setting> kSettings[] = {
      {"definition of the case", [](const Row& row) { return row.definition_hash; }},
      {"FLOP convention", [](const Row& row) { return row.model.convention; }},
      {"L2 policy", [](const Row& row) { return row.time_us ? row.time_us->l2 : ""; }},
      {"power", [](const Row& row) { return row.time_us ? row.time_us->power : ""; }},
      {"timer", [](const Row& row) { return row.time_us ? row.time_us->timer : ""; }},
  };
  for (const auto& [name, setting] : kSettings) {
    std::set<std::string> values;
    for (const Rows* rows : {&match.base, &match.candidate}) {
      for (const Row* row : *rows) {
        if (std::string value = setting(*row); !value.empty()) values.insert(std::move(value));
      }
    }
    if (values.size() < 2) continue;
    return fmt::format("other {}: {} and {}", name, *values.begin(), *values.rbegin());
  }
  return {};
}

// Whether the two sides may be held against each other.
std::optional<Ruling> judge_pair(const Match& match, bool across_devices) {
  if (match.base.empty()) return Ruling{Verdict::fresh, {}};
  const bool alike = match.base.front()->simulated == match.candidate.front()->simulated;
  if (match.base_class != match.candidate_class && !(across_devices && alike)) {
    return Ruling{Verdict::not_comparable,
                  fmt::format("base: {}; new: {}", match.base_class, match.candidate_class)};
  }
  if (const Row* row = first_of(match.base, [](const Row& r) { return r.status != Status::ok; })) {
    return Ruling{Verdict::fresh, fmt::format("base {}", to_string(row->status))};
  }
  if (const std::string reason = distrust(match.base); !reason.empty()) {
    return Ruling{Verdict::not_comparable, "base " + reason};
  }
  if (std::string reason = settings_difference(match); !reason.empty()) {
    return Ruling{Verdict::not_comparable, std::move(reason)};
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
      return "slower";
    case Verdict::faster:
      return "faster";
    case Verdict::same:
      return "same";
    case Verdict::unsure:
      return "unsure";
    case Verdict::fresh:
      return "new";
    case Verdict::gone:
      return "gone";
    case Verdict::wrong:
      return "wrong";
    case Verdict::failed:
      return "failed";
    case Verdict::not_comparable:
      return "not-comparable";
  }
  return "?";
}

std::string unfit_reason(const Row& row) {
  switch (row.status) {
    case Status::ok:
      return distrust({&row});
    case Status::unsupported:
    case Status::oom:
      return {};
    case Status::wrong:
    case Status::failed:
    case Status::crashed:
    case Status::timeout:
    case Status::not_run:
      break;
  }
  return why(row);
}

bool is_without_result(const Match& match) {
  if (all_ok(match.base)) return false;
  const Rows& rows = match.candidate;
  return rows.empty() || (first_with(rows, {Status::unsupported, Status::oom}) &&
                          !first_with(rows, {Status::wrong, Status::failed, Status::crashed,
                                             Status::timeout, Status::not_run}));
}

std::optional<Ruling> rule_out(const Match& match, bool across_devices) {
  std::optional<Ruling> ruling = judge_candidate(match);
  return ruling ? ruling : judge_pair(match, across_devices);
}

}  // namespace rooflash
