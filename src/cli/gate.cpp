// rooflash gate: two records, a verdict and an exit code for CI.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/comparison.hpp"
#include "cli/comparison_table.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

struct GateFlags {
  ComparisonFlags comparison;
  std::string base;
  std::string candidate;
  std::string missing = "fail";
  std::string unsure = "warn";
  std::string explain;
};

std::string_view headline(ExitCode code) {
  switch (code) {
    case ExitCode::ok:
      return "GATE PASSED";
    case ExitCode::incomplete:
      return "GATE FAILED, INCOMPLETE";
    case ExitCode::not_comparable:
      return "GATE FAILED, NOT COMPARABLE";
    case ExitCode::unsure:
      return "GATE FAILED, UNSURE";
    case ExitCode::nothing_ran:
      return "GATE COMPARED NOTHING";
    default:
      return "GATE FAILED";
  }
}

std::string explanation(const Comparison& comparison, const std::string& case_id) {
  std::string text;
  std::vector<std::string> known;
  for (const CaseComparison& one : comparison.cases) {
    known.push_back(one.case_id);
    if (one.case_id == case_id) text += explain_case(one) + "\n";
  }
  if (text.empty()) {
    throw UsageError(fmt::format("--explain: no case '{}' in these records", printable(case_id)),
                     known.empty() ? "they have no case in common" : suggest(case_id, known));
  }
  return text;
}

// The first case that made the gate fail.
const CaseComparison* culprit(const Comparison& comparison) {
  for (const Verdict verdict : {Verdict::wrong, Verdict::failed, Verdict::gone, Verdict::slower,
                                Verdict::not_comparable, Verdict::unsure}) {
    for (const CaseComparison& one : comparison.cases) {
      if (one.verdict == verdict) return &one;
    }
  }
  return nullptr;
}

void print_gate_warnings(const Comparison& comparison, const GateFlags& flags, ExitCode code) {
  print_comparison_warnings(comparison);
  const auto warn = [&](Verdict verdict, std::string_view text) {
    if (const int cases = count(comparison, verdict); cases > 0) {
      print_message(fmt::format("warning: {} {}", counted(cases, "case"), text));
    }
  };
  if (flags.missing == "warn") warn(Verdict::gone, "missing from the new record");
  warn(Verdict::fresh, "with no result in the base: not gated");
  if (code == ExitCode::ok) warn(Verdict::unsure, "unsure: neither passed nor failed");
  const int faster = count(comparison, Verdict::faster);
  if (code == ExitCode::ok && faster > 0) {
    print_message(fmt::format("next: {} faster; make {} the base of the next gate",
                              counted(faster, "case"), printable(flags.candidate)));
  }
  const CaseComparison* first = culprit(comparison);
  if (code != ExitCode::ok && first != nullptr && flags.explain.empty()) {
    print_message(fmt::format("next: rooflash gate {} {} --explain {}", printable(flags.base),
                              printable(flags.candidate), printable(first->case_id)));
  }
}

int gate(const Context& context, const GateFlags& flags) {
  const CompareRules rules = rules_of(flags.comparison);
  GatePolicy policy;
  policy.fail_on_missing = require_choice(flags.missing, "--missing", {"fail", "warn"}) == "fail";
  policy.fail_on_unsure = require_choice(flags.unsure, "--on-unsure", {"warn", "fail"}) == "fail";
  const Comparison comparison =
      compare(read_filtered(flags.base, flags.comparison.filters),
              read_filtered(flags.candidate, flags.comparison.filters), rules);
  const ExitCode code = gate_exit_code(comparison, policy);
  print_result(flags.explain.empty() ? render_comparison(comparison, flags.comparison.all,
                                                         table_options(context.color))
                                     : explanation(comparison, flags.explain));
  print_result(fmt::format("{}: {} (exit {})\n", headline(code), verdict_counts(comparison),
                           static_cast<int>(code)));
  if (!context.quiet) print_gate_warnings(comparison, flags, code);
  return static_cast<int>(code);
}

}  // namespace

void add_gate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("gate", "fail where a new record is slower than a base");
  command->footer(
      "Example: rooflash gate out/base.json out/new.json --threshold 3%\n"
      "Exit codes: 0 no confirmed slow-down; 1 slower; 3 a wrong result; 4 not comparable;\n"
      "5 unsure (--on-unsure fail); 6 a case failed or is missing; 7 nothing compared.\n"
      "Measured times need rounds: rooflash run --rounds 7. See docs/ci.md.");
  auto flags = std::make_shared<GateFlags>();
  command->add_option("BASE", flags->base, "record to hold against; - reads stdin")->required();
  command->add_option("NEW", flags->candidate, "record to judge")->required();
  add_comparison_flags(*command, flags->comparison);
  command->add_option("--missing", flags->missing, "fail (default) or warn: cases gone from NEW");
  command->add_option("--on-unsure", flags->unsure, "warn (default) or fail");
  command->add_option("--explain", flags->explain, "all that led to the verdict on this case");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return gate(context, *flags); }; });
}

}  // namespace rooflash
