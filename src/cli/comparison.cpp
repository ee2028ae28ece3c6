#include "cli/comparison.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "cli/gate_rules.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/reader.hpp"
#include "report/pivot.hpp"
#include "sweep/filter.hpp"

namespace rooflash {

void add_comparison_flags(CLI::App& app, ComparisonFlags& flags, const char* group) {
  app.add_option(
         "--threshold", flags.threshold,
         "change in time that matters (default 5%; 2% for paired rounds and simulated rows)")
      ->group(group);
  app.add_option("--abs", flags.floor, "change in a measured time that never matters (default 1us)")
      ->group(group);
  app.add_option("--rules", flags.rules, "FILE.json: other thresholds by filter (docs/ci.md)")
      ->group(group);
  app.add_option("--metric", flags.metrics,
                 "of static, counters and time, with quantising (default: all three)")
      ->group(group);
  app.add_flag("--paired", flags.paired, "round i of both records was measured side by side")
      ->group(group);
  app.add_flag("--all", flags.all, "list cases without a change too")->group(group);
}

CompareRules rules_of(const ComparisonFlags& flags) {
  CompareRules rules;
  rules.use_resources = rules.use_counters = rules.use_time = false;
  for (const std::string& metric : CLI::detail::split(flags.metrics, ',')) {
    require_choice(metric, "--metric", {"static", "counters", "time"});
    rules.use_resources |= metric == "static";
    rules.use_counters |= metric == "counters";
    rules.use_time |= metric == "time";
  }
  if (!flags.rules.empty()) load_gate_rules(flags.rules, rules);
  if (flags.threshold) rules.time.threshold = parse_threshold(*flags.threshold, "--threshold");
  if (flags.floor) rules.time.floor_us = parse_seconds(*flags.floor, "--abs") * 1e6;
  rules.time.paired = flags.paired;
  return rules;
}

Record read_filtered(const std::string& path, const std::vector<std::string>& filters) {
  Record record = read_record(path);
  const Filter filter = Filter::all_of(filters, Filter::Names::any);
  std::erase_if(record.rows, [&](const Row& row) {
    return !filter.matches(row.kernel, row.problem, row.device);
  });
  return record;
}

std::string verdict_counts(const Comparison& comparison) {
  std::string text;
  for (const Verdict verdict :
       {Verdict::wrong, Verdict::failed, Verdict::gone, Verdict::slower, Verdict::not_comparable,
        Verdict::unsure, Verdict::faster, Verdict::fresh, Verdict::same}) {
    const int cases = count(comparison, verdict);
    if (cases == 0) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", cases, to_string(verdict));
  }
  return text.empty() ? "no case" : text;
}

void print_comparison_warnings(const Comparison& comparison) {
  for (const std::string& difference : comparison.differences) {
    print_message("warning: " + printable(difference));
  }
  const auto short_of_rounds =
      std::count_if(comparison.cases.begin(), comparison.cases.end(),
                    [](const CaseComparison& one) { return one.time && !one.time->shift.ci95; });
  if (short_of_rounds > 0) {
    print_message(
        fmt::format("warning: too few rounds to judge the time of {}: samples of one round are not "
                    "independent. "
                    "Measure both sides with --rounds 7, or compare --metric static,counters",
                    counted(short_of_rounds, "case")));
  }
  std::string reason;
  std::int64_t without_base = 0;
  for (const CaseComparison& one : comparison.cases) {
    if (!one.quantize || ruling_of(*one.quantize).verdict != Verdict::fresh) continue;
    if (++without_base == 1) reason = ruling_of(*one.quantize).reason;
  }
  if (without_base > 0) {
    print_message(fmt::format("warning: quantising of {} is new, so it is not judged ({})",
                              counted(without_base, "case"), printable(reason)));
  }
}

}  // namespace rooflash
