#include "gate/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gate/match.hpp"
#include "gate/statistics.hpp"

namespace rooflash {
namespace {

constexpr std::string_view kNothingInCommon = "no figure that both records have";

std::string change_text(const FigureChange& figure) {
  if (figure.base == 0) return fmt::format("{} 0 to {:.0f}", figure.name, figure.candidate);
  return fmt::format("{} {}", figure.name, percent_change(figure.candidate / figure.base));
}

std::string class_label(const Match& match) {
  if (match.candidate.empty()) return match.base_class;
  if (match.base.empty() || match.base_class == match.candidate_class) return match.candidate_class;
  return match.base_class + " -> " + match.candidate_class;
}

CaseComparison compare_case(const Record& base, const Match& match, const CompareRules& rules) {
  const Row& row = match.candidate.empty() ? *match.base.front() : *match.candidate.front();
  CaseComparison found;
  found.case_id = match.case_id;
  found.device_class = class_label(match);
  found.kernel = row.kernel;
  found.problem = row.problem;
  found.repro = row.repro;
  CaseRules own = rules;
  if (rules.exceptions) rules.exceptions(row, own);
  found.rules = own.source;
  std::optional<Ruling> ruling = rule_out(match, rules.across_devices);
  if (!ruling) {
    const std::pair<bool, Tier> tiers[] = {{own.use_resources, Tier::resources},
                                           {own.use_counters, Tier::counters}};
    for (const auto& [used, tier] : tiers) {
      if (!used) continue;
      const std::vector<FigureChange> changes = figure_changes(tier, match, own.figures);
      found.figures.insert(found.figures.end(), changes.begin(), changes.end());
    }
    if (own.use_time) found.time = time_shift(base, match, own.time);
    if (found.time && own.use_quantize) found.quantize = compare_quantizing(match, own.time);
    ruling = judge_tiers(found);
  }
  found.verdict = ruling->verdict;
  found.reason = std::move(ruling->reason);
  return found;
}

// Sound on both sides, and nothing of it judged because exceptions said so.
bool is_left_out(const CaseComparison& found) {
  return found.reason == kNothingInCommon && !found.rules.empty();
}

void add_q_values(std::vector<CaseComparison>& cases) {
  std::vector<double> p;
  std::vector<TimeShift*> tested;
  const auto add = [&](std::optional<TimeShift>& time) {
    if (!time || !time->shift.p) return;
    p.push_back(*time->shift.p);
    tested.push_back(&*time);
  };
  for (CaseComparison& one : cases) {
    add(one.time);
    if (one.quantize) add(one.quantize->time);
  }
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < q.size(); ++i) tested[i]->q = q[i];
}

void add_families(Comparison& comparison, Measure measure) {
  std::vector<FamilyCase> cases;
  for (const CaseComparison& one : comparison.cases) {
    if (const TimeShift* time = time_of(one, measure)) {
      cases.push_back({one.case_id, one.kernel, one.device_class, *time});
    }
  }
  for (FamilyShift& family : family_shifts(cases, measure)) {
    comparison.families.push_back(std::move(family));
  }
}

}  // namespace

const TimeShift* time_of(const CaseComparison& found, Measure measure) {
  if (measure == Measure::time_us) return found.time ? &*found.time : nullptr;
  return found.quantize && found.quantize->time ? &*found.quantize->time : nullptr;
}

Ruling judge_attention(const CaseComparison& found) {
  const auto worse = std::find_if(found.figures.begin(), found.figures.end(),
                                  [](const FigureChange& figure) { return figure.is_worse(); });
  const bool gained = found.time && found.time->direction == Direction::faster;
  if (worse != found.figures.end()) {
    return {gained ? Verdict::faster : Verdict::slower, change_text(*worse)};
  }
  if (found.time) return ruling_of(*found.time);
  const auto better = std::find_if(found.figures.begin(), found.figures.end(),
                                   [](const FigureChange& figure) { return figure.is_better(); });
  if (better != found.figures.end()) return {Verdict::faster, change_text(*better)};
  if (!found.figures.empty()) return {Verdict::same, {}};
  return {Verdict::not_comparable, std::string(kNothingInCommon)};
}

Ruling judge_tiers(const CaseComparison& found) {
  Ruling ruling = judge_attention(found);
  return found.quantize ? with_quantizing(std::move(ruling), *found.quantize) : ruling;
}

bool is_slower(const CaseComparison& found, Measure measure) {
  if (measure == Measure::time_us) return judge_attention(found).verdict == Verdict::slower;
  return found.quantize && ruling_of(*found.quantize).verdict == Verdict::slower;
}

Comparison compare(const Record& base, const Record& candidate, const CompareRules& rules) {
  Comparison comparison;
  comparison.differences = environment_differences(base, candidate);
  for (const Match& match : match_rows(base, candidate)) {
    if (is_without_result(match)) {
      ++comparison.without_result;
    } else {
      CaseComparison found = compare_case(base, match, rules);
      if (is_left_out(found)) {
        ++comparison.left_out;
      } else {
        comparison.cases.push_back(std::move(found));
      }
    }
  }
  add_q_values(comparison.cases);
  add_families(comparison, Measure::time_us);
  add_families(comparison, Measure::quantize_us);
  return comparison;
}

int count(const Comparison& comparison, Verdict verdict) {
  return static_cast<int>(
      std::count_if(comparison.cases.begin(), comparison.cases.end(),
                    [&](const CaseComparison& one) { return one.verdict == verdict; }));
}

int count(const Comparison& comparison, Direction direction) {
  return static_cast<int>(
      std::count_if(comparison.families.begin(), comparison.families.end(),
                    [&](const FamilyShift& one) { return one.direction == direction; }));
}

int judged_cases(const Comparison& comparison) {
  return static_cast<int>(std::count_if(
      comparison.cases.begin(), comparison.cases.end(), [](const CaseComparison& one) {
        return one.verdict == Verdict::slower || one.verdict == Verdict::faster ||
               one.verdict == Verdict::same ||
               (one.verdict == Verdict::unsure && one.time && one.time->shift.ci95);
      }));
}

std::optional<Geomean> geomean_ratio(const Comparison& comparison, Measure measure) {
  double sum = 0;
  int cases = 0;
  for (const CaseComparison& one : comparison.cases) {
    const TimeShift* time = time_of(one, measure);
    if (time == nullptr) continue;
    sum += std::log(time->shift.ratio);
    ++cases;
  }
  if (cases == 0) return std::nullopt;
  return Geomean{std::exp(sum / cases), cases};
}

ExitCode gate_exit_code(const Comparison& comparison, const GatePolicy& policy) {
  if (count(comparison, Verdict::wrong) > 0) return ExitCode::wrong;
  if (count(comparison, Verdict::failed) > 0) return ExitCode::incomplete;
  if (policy.fail_on_missing && count(comparison, Verdict::gone) > 0) return ExitCode::incomplete;
  if (count(comparison, Verdict::slower) > 0) return ExitCode::slower;
  if (count(comparison, Direction::slower) > 0) return ExitCode::slower;
  if (count(comparison, Verdict::not_comparable) > 0) return ExitCode::not_comparable;
  if (judged_cases(comparison) == 0) return ExitCode::nothing_ran;
  if (policy.fail_on_unsure && count(comparison, Verdict::unsure) > 0) return ExitCode::unsure;
  return ExitCode::ok;
}

}  // namespace rooflash
