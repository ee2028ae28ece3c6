#include "gate/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "gate/match.hpp"
#include "gate/statistics.hpp"

namespace rooflash {
namespace {

std::string change_text(const FigureChange& figure) {
  if (figure.base == 0) return fmt::format("{} 0 to {:.0f}", figure.name, figure.candidate);
  return fmt::format("{} {}", figure.name, percent_change(figure.candidate / figure.base));
}

Verdict verdict_of(Direction direction) {
  switch (direction) {
    case Direction::slower:
      return Verdict::slower;
    case Direction::faster:
      return Verdict::faster;
    case Direction::same:
      return Verdict::same;
    case Direction::unsure:
      break;
  }
  return Verdict::unsure;
}

// The tiers in order: figures first, then time. A confirmed gain in time outweighs figures that
// grew: faster never fails.
Ruling judge_tiers(const CaseComparison& found) {
  const auto worse = std::find_if(found.figures.begin(), found.figures.end(),
                                  [](const FigureChange& figure) { return figure.is_worse(); });
  const bool gained = found.time && found.time->direction == Direction::faster;
  if (worse != found.figures.end()) {
    return {gained ? Verdict::faster : Verdict::slower, change_text(*worse)};
  }
  if (found.time) return {verdict_of(found.time->direction), found.time->reason};
  const auto better = std::find_if(found.figures.begin(), found.figures.end(),
                                   [](const FigureChange& figure) { return figure.is_better(); });
  if (better != found.figures.end()) return {Verdict::faster, change_text(*better)};
  if (!found.figures.empty()) return {Verdict::same, {}};
  return {Verdict::not_comparable, "no figure that both records have"};
}

CaseComparison compare_case(const Record& base, const Match& match, const CompareRules& rules) {
  const Row& row = match.candidate.empty() ? *match.base.front() : *match.candidate.front();
  CaseComparison found{match.case_id,
                       match.candidate.empty() ? match.base_class : match.candidate_class,
                       row.kernel,
                       row.problem,
                       {},
                       {},
                       {},
                       {},
                       row.repro};
  std::optional<Ruling> ruling = rule_out(match);
  if (!ruling) {
    const std::pair<bool, Tier> tiers[] = {{rules.use_resources, Tier::resources},
                                           {rules.use_counters, Tier::counters}};
    for (const auto& [used, tier] : tiers) {
      if (!used) continue;
      const std::vector<FigureChange> changes = figure_changes(tier, match);
      found.figures.insert(found.figures.end(), changes.begin(), changes.end());
    }
    if (rules.use_time) found.time = time_shift(base, match, rules.time);
    ruling = judge_tiers(found);
  }
  found.verdict = ruling->verdict;
  found.reason = std::move(ruling->reason);
  return found;
}

void add_q_values(std::vector<CaseComparison>& cases) {
  std::vector<double> p;
  std::vector<TimeShift*> tested;
  for (CaseComparison& one : cases) {
    if (!one.time || !one.time->p) continue;
    p.push_back(*one.time->p);
    tested.push_back(&*one.time);
  }
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < q.size(); ++i) tested[i]->q = q[i];
}

}  // namespace

Comparison compare(const Record& base, const Record& candidate, const CompareRules& rules) {
  Comparison comparison;
  comparison.differences = environment_differences(base, candidate);
  for (const Match& match : match_rows(base, candidate)) {
    if (is_without_result(match)) {
      ++comparison.without_result;
    } else {
      comparison.cases.push_back(compare_case(base, match, rules));
    }
  }
  add_q_values(comparison.cases);
  return comparison;
}

int count(const Comparison& comparison, Verdict verdict) {
  return static_cast<int>(
      std::count_if(comparison.cases.begin(), comparison.cases.end(),
                    [&](const CaseComparison& one) { return one.verdict == verdict; }));
}

int judged_cases(const Comparison& comparison) {
  return static_cast<int>(std::count_if(
      comparison.cases.begin(), comparison.cases.end(), [](const CaseComparison& one) {
        return one.verdict == Verdict::slower || one.verdict == Verdict::faster ||
               one.verdict == Verdict::same ||
               (one.verdict == Verdict::unsure && one.time && one.time->ci95);
      }));
}

std::optional<Geomean> geomean_ratio(const Comparison& comparison) {
  double sum = 0;
  int cases = 0;
  for (const CaseComparison& one : comparison.cases) {
    if (!one.time) continue;
    sum += std::log(one.time->ratio);
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
  if (count(comparison, Verdict::not_comparable) > 0) return ExitCode::not_comparable;
  if (judged_cases(comparison) == 0) return ExitCode::nothing_ran;
  if (policy.fail_on_unsure && count(comparison, Verdict::unsure) > 0) return ExitCode::unsure;
  return ExitCode::ok;
}

}  // namespace rooflash
