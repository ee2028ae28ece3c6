#include "gate/stages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>

namespace rooflash {
namespace {

bool is_change(Direction direction) {
  return direction == Direction::slower || direction == Direction::faster;
}

std::string not_confirmed(const Shift& again) {
  return fmt::format("not confirmed: {} when measured again", percent_change(again.ratio));
}

Record with_rows(const Record& record, const std::function<bool(const Row& row)>& keep) {
  Record kept = record;
  std::erase_if(kept.rows, [&](const Row& row) { return !keep(row); });
  return kept;
}

bool is_suspect(const TimeShift* time) {
  return time != nullptr && time->direction != Direction::same;
}

// Turns a change that `again` does not show to unsure, and says whether it did.
bool take_back(std::optional<TimeShift>& time, const TimeShift* again) {
  if (!time || again == nullptr || !is_change(time->direction) ||
      again->direction == time->direction) {
    return false;
  }
  time->direction = Direction::unsure;
  time->reason = not_confirmed(again->shift);
  return true;
}

}  // namespace

std::vector<std::string> suspects(const Comparison& screening) {
  std::set<std::string> found;
  for (const CaseComparison& one : screening.cases) {
    if (is_suspect(time_of(one, Measure::time_us)) ||
        is_suspect(time_of(one, Measure::quantize_us))) {
      found.insert(one.case_id);
    }
  }
  for (const FamilyShift& family : screening.families) {
    if (family.direction != Direction::same) {
      found.insert(family.case_ids.begin(), family.case_ids.end());
    }
  }
  return {found.begin(), found.end()};
}

void confirm(Comparison& all, const Comparison& fresh) {
  for (CaseComparison& one : all.cases) {
    const auto again = std::find_if(fresh.cases.begin(), fresh.cases.end(), [&](const auto& other) {
      return other.case_id == one.case_id && other.device_class == one.device_class;
    });
    if (again == fresh.cases.end()) continue;
    bool changed = take_back(one.time, time_of(*again, Measure::time_us));
    if (one.quantize && take_back(one.quantize->time, time_of(*again, Measure::quantize_us))) {
      changed = true;
    }
    if (!changed) continue;
    const Ruling ruling = judge_tiers(one);
    one.verdict = ruling.verdict;
    one.reason = ruling.reason;
  }
  for (FamilyShift& one : all.families) {
    const auto again =
        std::find_if(fresh.families.begin(), fresh.families.end(), [&](const auto& other) {
          return other.measure == one.measure && other.kernel == one.kernel &&
                 other.device_class == one.device_class;
        });
    if (again == fresh.families.end() || !is_change(one.direction) ||
        again->direction == one.direction) {
      continue;
    }
    one.direction = Direction::unsure;
    one.reason = not_confirmed(again->shift);
  }
}

Comparison compare_in_stages(const Record& base, const Record& candidate, const CompareRules& rules,
                             int screen_rounds) {
  const auto first = [&](const Row& row) { return row.round < screen_rounds; };
  const std::vector<std::string> again =
      suspects(compare(with_rows(base, first), with_rows(candidate, first), rules));
  const auto is_again = [&](const Row& row) {
    return std::binary_search(again.begin(), again.end(), row.case_id);
  };
  const auto used = [&](const Row& row) { return first(row) || is_again(row); };
  const auto fresh = [&](const Row& row) { return !first(row) && is_again(row); };
  Comparison all = compare(with_rows(base, used), with_rows(candidate, used), rules);
  confirm(all, compare(with_rows(base, fresh), with_rows(candidate, fresh), rules));
  return all;
}

}  // namespace rooflash
