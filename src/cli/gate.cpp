// rooflash gate: a verdict and an exit code for CI, on two records, two executables or a baseline.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "cli/baseline_folder.hpp"
#include "cli/commands.hpp"
#include "cli/comparison.hpp"
#include "cli/comparison_table.hpp"
#include "cli/gate_delivery.hpp"
#include "cli/gate_flags.hpp"
#include "cli/gate_rules.hpp"
#include "cli/outputs.hpp"
#include "cli/record_reference.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "core/units.hpp"
#include "gate/calibrate.hpp"
#include "gate/match.hpp"
#include "gate/rounds.hpp"
#include "gate/stages.hpp"
#include "model/suggest.hpp"
#include "record/writer.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

constexpr int kBaselineRounds = 5;

std::string session_folder(const GateFlags& flags) {
  if (!flags.folder.empty()) return flags.folder;
  const std::string state = state_folder();
  if (!state.empty()) return state + "/gate";
  throw UsageError("there is no place for the rounds: HOME and XDG_STATE_HOME are not set",
                   "name a folder with -o");
}

Executable judged_executable(const GateFlags& flags) {
  return flags.executable.empty() ? this_executable("new")
                                  : require_executable(flags.executable, "new");
}

// The rows of the first record that are among `cases`, one of each.
std::vector<const Row*> rows_of(const Record& record, const std::vector<std::string>& cases) {
  std::set<std::string> left(cases.begin(), cases.end());
  std::vector<const Row*> rows;
  for (const Row& row : record.rows) {
    if (left.erase(row.case_id) > 0) rows.push_back(&row);
  }
  return rows;
}

// The command that judges the same records the same way: `words` and the flags of that.
std::string command_again(std::vector<std::string> words, const GateFlags& flags) {
  const ComparisonFlags& how = flags.comparison;
  const auto add = [&](const char* flag, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(flag);
    words.push_back(value);
  };
  add("--threshold", how.threshold.value_or(""));
  add("--abs", how.floor.value_or(""));
  add("--rules", how.rules);
  if (how.metrics != ComparisonFlags{}.metrics) add("--metric", how.metrics);
  if (flags.mismatch == "warn") add("--on-mismatch", flags.mismatch);
  for (const std::string& filter : flags.sweep.filters) add("-f", filter);
  return shell_command(words);
}

struct Pair {
  Record base;
  Record candidate;
  Comparison comparison;
  int screen_rounds = 0;
  std::vector<std::string> paths;
};

// Two stages: all cases, then what is not the same again, in fresh rounds.
Pair measure_pair(const Gate& gate, const GatePlan& plan, std::vector<Executable> executables) {
  const GateFlags& flags = gate.flags;
  const bool quiet = gate.context.quiet;
  const int rounds = parse_rounds(flags.rounds, "--rounds", plan.exact ? 1 : kScreenRounds);
  const int confirm_rounds = parse_rounds(flags.confirm_rounds, "--confirm-rounds",
                                          plan.exact || flags.calibrate ? 0 : kConfirmRounds);
  GateSession session(session_folder(flags), plan.sweep, std::move(executables), flags.resume,
                      quiet);
  session.check_plans();
  if (!quiet)
    print_message(fmt::format("{} of both executables, in turns", counted(rounds, "round")));
  std::vector<Record> records = session.measure("screen", rounds, 0, {});
  Pair pair{records[0], records[1], compare(records[0], records[1], gate.rules), rounds, {}};
  const std::vector<std::string> again = suspects(pair.comparison);
  if (confirm_rounds > 0 && !again.empty()) {
    if (!quiet) {
      print_message(fmt::format("{} not known to be the same: {} more",
                                counted(std::ssize(again), "case"),
                                counted(confirm_rounds, "round")));
    }
    const std::vector<Record> fresh =
        session.measure("confirm", confirm_rounds, rounds, rows_of(pair.candidate, again));
    add_rounds(pair.base, fresh[0], 0);
    add_rounds(pair.candidate, fresh[1], 0);
    pair.comparison = compare_in_stages(pair.base, pair.candidate, gate.rules, rounds);
  }
  pair.paths = session.finish({pair.base, pair.candidate});
  return pair;
}

int gate_paired(Gate gate) {
  const GateFlags& flags = gate.flags;
  gate.rules.time.paired = true;
  const GatePlan plan = plan_gate(flags, gate.context.quiet);
  const Executable judged = judged_executable(flags);
  const Executable base = require_executable(flags.against, "old");
  const Pair pair = measure_pair(gate, plan, {base, judged});
  GateResult result{"paired", base.version, judged.version, {}, pair.comparison, ExitCode::ok};
  result.next = command_again({"rooflash", "gate", pair.paths[0], pair.paths[1], "--paired",
                               "--rounds", std::to_string(pair.screen_rounds)},
                              flags);
  if (!gate.context.quiet) {
    print_message(printable(fmt::format("saved {}, {}", pair.paths[0], pair.paths[1]), 1000));
  }
  return deliver(gate, std::move(result), "the base of the next gate is better still");
}

int gate_records(const Gate& gate) {
  const GateFlags& flags = gate.flags;
  const std::vector<std::string>& paths = flags.records;
  GateResult result{"records", flags.names[0], flags.names[1], {}, {}, ExitCode::ok};
  const Record base = read_filtered(paths[0], flags.sweep.filters);
  const Record candidate = read_filtered(paths[1], flags.sweep.filters);
  result.comparison = flags.rounds.empty()
                          ? compare(base, candidate, gate.rules)
                          : compare_in_stages(base, candidate, gate.rules,
                                              parse_rounds(flags.rounds, "--rounds", 0));
  std::vector<std::string> again{"rooflash", "gate", paths[0], paths[1]};
  if (flags.comparison.paired) again.emplace_back("--paired");
  if (!flags.rounds.empty()) again.insert(again.end(), {"--rounds", flags.rounds});
  result.next = command_again(again, flags);
  return deliver(gate, std::move(result),
                 fmt::format("make {} the base of the next gate", printable(paths[1])));
}

int gate_baseline(const Gate& gate) {
  const GateFlags& flags = gate.flags;
  require_baseline_name(flags.baseline);
  const std::string folder = baseline_folder(flags.baseline_folder);
  Record candidate;
  std::string path;
  std::string name;
  if (flags.records.empty()) {
    const GatePlan plan = plan_gate(flags, gate.context.quiet);
    for (const DeviceInfo& device : plan.devices) {
      find_baseline(folder, flags.baseline, device_class(device), plan.suite);
    }
    GateSession session(session_folder(flags), plan.sweep, {judged_executable(flags)}, flags.resume,
                        gate.context.quiet);
    session.check_plans();
    const int rounds = parse_rounds(flags.rounds, "--rounds", plan.exact ? 1 : kBaselineRounds);
    const std::vector<Record> records = session.measure("new", rounds, 0, {});
    path = name = session.finish(records).front();
    candidate = read_filtered(path, {});
    if (!gate.context.quiet) print_message("saved " + printable(path));
  } else {
    path = flags.records.front();
    name = flags.names.front();
    candidate = read_filtered(path, flags.sweep.filters);
  }
  GateResult result{"baseline", flags.baseline, name, {}, {}, ExitCode::ok};
  result.comparison =
      compare_with_baseline(folder, flags.baseline, candidate, flags.sweep.filters, gate.rules);
  std::vector<std::string> promote{"rooflash", "baseline", "promote", flags.baseline, path};
  std::vector<std::string> again{"rooflash", "gate", "--baseline", flags.baseline, path};
  if (!flags.baseline_folder.empty()) {
    for (std::vector<std::string>* words : {&promote, &again}) {
      words->insert(words->end(), {"--baseline-dir", flags.baseline_folder});
    }
  }
  result.next = command_again(again, flags);
  return deliver(gate, std::move(result), printable(shell_command(promote), 1000));
}

int calibrate_gate(Gate gate) {
  const GateFlags& flags = gate.flags;
  gate.rules.time.paired = true;
  Comparison same;
  if (flags.records.empty()) {
    const GatePlan plan = plan_gate(flags, gate.context.quiet);
    Executable base = judged_executable(flags);
    base.label = "old";
    same = measure_pair(gate, plan, {base, judged_executable(flags)}).comparison;
  } else {
    same = compare(read_filtered(flags.records[0], flags.sweep.filters),
                   read_filtered(flags.records[1], flags.sweep.filters), gate.rules);
  }
  const double most = gate.rules.time.threshold.value_or(kMostProposed);
  const std::vector<CaseNoise> cases = calibrate(same, most);
  if (cases.empty()) {
    throw Error(ExitCode::nothing_ran,
                fmt::format("no case has {} pairs of rounds with a time", kLeastPairs),
                "measure more: --rounds 7");
  }
  print_result(render_calibration(cases, most, table_options(gate.context.color)));
  if (flags.save_rules.empty()) return 0;
  std::vector<ProposedRule> rules;
  for (const CaseNoise& one : cases) {
    if (one.threshold == kPairedThreshold) continue;
    rules.push_back({"case:" + one.case_id, one.threshold ? "threshold" : "time",
                     one.threshold ? fmt::format("{:.6g}%", *one.threshold * 100) : "off"});
  }
  write_file_atomic(flags.save_rules, rules_text(kPairedThreshold, rules));
  if (!gate.context.quiet) print_message("saved " + printable(flags.save_rules));
  return 0;
}

int run_gate(const Context& context, const GateFlags& typed) {
  const GateMode mode = mode_of(typed);
  GateFlags flags = typed;
  const std::vector<RecordReference> records = find_records(typed.records);
  flags.records = paths_of(records);
  for (const RecordReference& record : records) flags.names.push_back(record.name());
  const Gate gate = prepare_gate(context, flags);
  if (flags.calibrate) return calibrate_gate(gate);
  if (mode == GateMode::paired) return gate_paired(gate);
  if (mode == GateMode::baseline) return gate_baseline(gate);
  return gate_records(gate);
}

}  // namespace

void add_gate(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("gate", "fail where something is slower than a base");
  command->footer(
      "Examples: rooflash gate out/base.json out/new.json\n"
      "          rooflash gate --against-exe ../main/build/rooflash --suite quickstart\n"
      "          rooflash gate --baseline main --suite quickstart\n"
      "Exit codes: 0 no confirmed slow-down; 1 slower; 3 a wrong result; 4 not comparable;\n"
      "5 unsure (--on-unsure fail); 6 a case failed or is missing; 7 nothing compared.\n"
      "See docs/ci.md.");
  auto flags = std::make_shared<GateFlags>();
  add_gate_flags(*command, *flags);
  command->callback(
      [&context, flags] { context.action = [&, flags] { return run_gate(context, *flags); }; });
}

}  // namespace rooflash
