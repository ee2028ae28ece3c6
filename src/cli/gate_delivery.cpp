#include "cli/gate_delivery.hpp"

#include <fmt/format.h>

#include <vector>

#include "cli/comparison.hpp"
#include "cli/comparison_table.hpp"
#include "cli/outputs.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "record/writer.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

std::string explanation(const Comparison& comparison, const std::string& case_id) {
  std::string text;
  std::vector<std::string> known;
  for (const CaseComparison& one : comparison.cases) {
    known.push_back(one.case_id);
    if (one.case_id == case_id) text += explain_case(one) + "\n";
  }
  if (text.empty()) {
    throw UsageError(fmt::format("--explain: no case '{}' is compared", printable(case_id)),
                     known.empty() ? "they have no case in common" : suggest(case_id, known));
  }
  return text;
}

void print_gate_warnings(const Gate& gate, const GateResult& result, const std::string& promote) {
  const Comparison& comparison = result.comparison;
  print_comparison_warnings(comparison);
  const auto warn = [&](Verdict verdict, std::string_view text) {
    if (const int cases = count(comparison, verdict); cases > 0) {
      print_message(fmt::format("warning: {} {}", counted(cases, "case"), text));
    }
  };
  if (!gate.policy.fail_on_missing) warn(Verdict::gone, "missing from the new record");
  warn(Verdict::fresh, "with no result in the base: not gated");
  if (result.code == ExitCode::ok) warn(Verdict::unsure, "unsure: neither passed nor failed");
  const int faster = count(comparison, Verdict::faster);
  if (result.code == ExitCode::ok && faster > 0) {
    print_message(fmt::format("next: {} faster; {}", counted(faster, "case"), promote));
  }
  if (comparison.cases.empty()) {
    print_message(comparison.left_out > 0
                      ? "next: let the rules leave something to judge"
                      : "next: judge records that have results of the same cases, or loosen -f");
  }
  const std::vector<const CaseComparison*> cases = by_weight(comparison);
  const bool told =
      !gate.flags.explain.empty() || cases.empty() || cases.front()->verdict == Verdict::same ||
      cases.front()->verdict == Verdict::fresh || cases.front()->verdict == Verdict::faster;
  if (result.code != ExitCode::ok && !told) {
    print_message(printable(
        fmt::format("next: {} --explain {}", result.next, shell_word(cases.front()->case_id)),
        4000));
  }
}

}  // namespace

Gate prepare_gate(const Context& context, const GateFlags& flags) {
  Gate gate{context, flags, rules_of(flags.comparison), {}, choose_ci(flags.ci), flags.junit};
  gate.policy.fail_on_missing =
      require_choice(flags.missing, "--missing", {"fail", "warn"}) == "fail";
  gate.policy.fail_on_unsure =
      require_choice(flags.unsure, "--on-unsure", {"warn", "fail"}) == "fail";
  gate.rules.across_devices =
      require_choice(flags.mismatch, "--on-mismatch", {"fail", "warn"}) == "warn";
  if (gate.ci == Ci::gitlab && gate.junit.empty()) gate.junit = "rooflash-junit.xml";
  std::vector<std::string> written;
  for (const std::string& path : {flags.verdict, gate.junit, flags.summary, flags.save_rules}) {
    if (path.empty()) continue;
    for (const std::vector<std::string>& others : {written, flags.records}) {
      for (const std::string& other : others) {
        if (other == "-" || !same_file(other, path)) continue;
        throw UsageError(fmt::format("{} is named twice", printable(path)),
                         "each output needs a file of its own, and no record is replaced");
      }
    }
    check_output_path(path);
    written.push_back(path);
  }
  return gate;
}

int deliver(const Gate& gate, GateResult result, const std::string& promote) {
  result.code = gate_exit_code(result.comparison, gate.policy);
  const std::string& explain = gate.flags.explain;
  print_result(explain.empty() ? render_comparison(result.comparison, gate.flags.comparison.all,
                                                   table_options(gate.context.color))
                               : explanation(result.comparison, explain));
  print_result(gate_sentence(result) + "\n");
  if (!gate.context.quiet) print_gate_warnings(gate, result, promote);
  if (!gate.flags.verdict.empty()) write_file_atomic(gate.flags.verdict, verdict_json(result));
  if (!gate.junit.empty()) write_file_atomic(gate.junit, verdict_junit(result));
  if (!gate.flags.summary.empty()) {
    write_file_atomic(gate.flags.summary, verdict_markdown(result, kMaxSummaryBytes));
  }
  report_to_ci(gate.ci, result);
  return static_cast<int>(result.code);
}

}  // namespace rooflash
