#include "cli/gate_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "cli/devices.hpp"
#include "cli/flags.hpp"
#include "cli/record_reference.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/calibrate.hpp"

namespace rooflash {
namespace {

constexpr int kMaxRounds = 1000;

struct MeasuringHelp {
  const char* name;
  const char* text;
};
constexpr MeasuringHelp kMeasuring[] = {
    {"--l2", "cold (default) or warm"},
    {"--power", "burst (default) or sustained"},
    {"--counters", "hbm or none; by default of the first round alone"},
    {"--warmup", "auto (default), such as 20ms, or 10x launches"},
    {"--min-samples", "at least so many samples (default 10x)"},
    {"--max-samples", "at most so many (default 200x)"},
    {"--max-noise", "stop when the median is known to within this (0.5%)"},
    {"--max-time", "of sampling one case (default 400ms)"},
    {"--timeout", "of one case, beyond --max-time and --warmup (default 60s)"},
    {"--sram", "SRAM of one SM of a simulated GPU"},
};

// Not the device and the time limit: the environment may set them for all commands.
bool chooses_measuring(const GateFlags& flags) {
  const SweepFlags& sweep = flags.sweep;
  return !sweep.suite.empty() || !sweep.axes.empty() || sweep.fwd || sweep.bwd ||
         flags.measuring.size() > flags.measuring.count("--timeout");
}

void refuse(bool contradicts, const std::string& what, const std::string& hint) {
  if (contradicts) throw UsageError(what, hint);
}

std::vector<std::string> case_words(const SweepFlags& sweep) {
  std::vector<std::string> words;
  const auto add = [&](const std::string& flag, const std::string& value) {
    words.push_back(flag);
    words.push_back(value);
  };
  if (!sweep.suite.empty()) add("--suite", sweep.suite);
  for (const auto& [axis, value] : sweep.axes) add("--" + axis, value);
  if (sweep.fwd) words.emplace_back("--fwd");
  if (sweep.bwd) words.emplace_back("--bwd");
  for (const std::string& filter : sweep.filters) add("--filter", filter);
  if (sweep.order != "shuffle") add("--order", sweep.order);
  return words;
}

}  // namespace

void add_gate_flags(CLI::App& command, GateFlags& flags) {
  command
      .add_option("RECORD", flags.records,
                  fmt::format("BASE NEW, or NEW with --baseline: {}", kRecordHelp))
      ->expected(1, 2);
  const char* const kWhat = "What is held against what";
  const auto option = [&](const char* names, std::string& value, const std::string& help,
                          const char* group) {
    command.add_option(names, value, help)->group(group);
  };
  option("--against-exe", flags.against, "measure against this rooflash executable, in turns",
         kWhat);
  option("--exe", flags.executable, "the executable to judge (default: this one)", kWhat);
  option("--baseline", flags.baseline, "hold against this stored baseline", kWhat);
  option("--baseline-dir", flags.baseline_folder,
         "where baselines lie (default: ROOFLASH_BASELINE_DIR, else baselines)", kWhat);
  command
      .add_flag("--calibrate", flags.calibrate,
                "compare with itself: the noise of each case and the threshold it allows")
      ->group(kWhat);
  const char* const kJudged = "How it is judged";
  add_comparison_flags(command, flags.comparison, kJudged);
  const auto choice = [&](const char* names, std::string& value,
                          const std::vector<std::string>& choices, const char* help) {
    add_choice(command, names, value, choices, help)->group(kJudged);
  };
  choice("--missing", flags.missing, {"fail", "warn"}, "cases that are gone; default fail");
  choice("--on-unsure", flags.unsure, {"warn", "fail"}, "default warn");
  choice("--on-mismatch", flags.mismatch, {"fail", "warn"},
         "records of two models of GPU; default fail");
  add_sweep_flags(command, flags.sweep, {}, false);
  const char* const kMeasure = "How it is measured";
  option(
      "--rounds", flags.rounds,
      fmt::format("of each executable (default {}; 5 against a baseline); with --paired records, "
                  "those of the first stage",
                  kScreenRounds),
      kMeasure);
  option("--confirm-rounds", flags.confirm_rounds,
         fmt::format("fresh rounds of what is not the same (default {})", kConfirmRounds),
         kMeasure);
  for (const auto& [name, text] : kMeasuring) {
    const auto set = [&flags, flag = std::string(name)](const std::string& value) {
      flags.measuring[flag] = value;
    };
    command.add_option_function<std::string>(name, set, text)->group(kMeasure);
  }
  const char* const kOutput = "Output";
  option("-o,--output", flags.folder,
         "folder for the records measured (default: in XDG_STATE_HOME)", kOutput);
  command.add_flag("--resume", flags.resume, "go on with an interrupted gate")->group(kOutput);
  option("--explain", flags.explain, "all that led to the verdict on this case", kOutput);
  option("--verdict", flags.verdict, "FILE.json: every case with its figures", kOutput);
  option("--junit", flags.junit, "FILE.xml: a test a case", kOutput);
  option("--summary", flags.summary, "FILE.md: what changed", kOutput);
  add_choice(command, "--ci", flags.ci, {"none", "auto", "github", "gitlab"},
             "annotations and step summary, or JUnit; default none")
      ->group(kOutput);
  option("--save-rules", flags.save_rules, "FILE.json: with --calibrate, rules for --rules",
         kOutput);
}

GateMode mode_of(const GateFlags& flags) {
  const bool paired = !flags.against.empty() || (flags.calibrate && flags.records.empty());
  const bool baseline = !flags.baseline.empty();
  const bool measures = paired || (baseline && flags.records.empty());
  refuse(paired && baseline, "--against-exe and --baseline: one base at a time",
         "rooflash gate --help shows the forms");
  refuse(flags.calibrate && baseline, "--calibrate compares with itself, not with a --baseline",
         "leave --baseline out");
  refuse(flags.calibrate && !flags.against.empty(),
         "--calibrate compares with itself, not with --against-exe", "name it with --exe");
  refuse(!flags.against.empty() && !flags.records.empty(),
         fmt::format("--against-exe measures both sides; '{}' is a record too many",
                     flags.records.empty() ? "" : printable(flags.records.front())),
         "leave the record out, or --against-exe");
  refuse(baseline && flags.records.size() > 1, "--baseline is the base; one record is judged",
         "rooflash gate --baseline NAME NEW.json");
  refuse(!paired && !baseline && flags.records.size() != 2,
         flags.records.empty() ? "nothing to hold against" : "NEW is required",
         "rooflash gate BASE.json NEW.json, or --baseline NAME, or --against-exe OLD");
  refuse(!measures && (chooses_measuring(flags) || !flags.executable.empty() || flags.resume ||
                       !flags.folder.empty() || !flags.confirm_rounds.empty()),
         "the flags about measuring have no use: records are compared, nothing is measured",
         "leave the records out, or those flags; -f selects rows of records");
  refuse(!measures && !flags.rounds.empty() && !flags.comparison.paired,
         "--rounds of records: those of the first stage, which only --paired rounds have",
         "add --paired, or leave --rounds out");
  refuse(flags.comparison.paired && baseline,
         "--paired: rounds of a baseline were measured on other days", "leave it out");
  refuse(!flags.save_rules.empty() && !flags.calibrate, "--save-rules needs --calibrate",
         "rooflash gate --calibrate --save-rules rules.json");
  if (baseline) return GateMode::baseline;
  return paired ? GateMode::paired : GateMode::records;
}

GatePlan plan_gate(const GateFlags& flags, bool quiet) {
  const Sweep sweep = resolve_sweep(flags.sweep);
  const DeviceChoice choice =
      choose_devices(sweep.devices.empty() ? std::vector<std::string>{"auto"} : sweep.devices);
  if (!quiet) announce(choice);
  sweep.plan(plan_devices(choice.devices));
  GatePlan plan;
  plan.suite = sweep.suite;
  plan.devices = choice.devices;
  plan.exact = true;
  plan.sweep.cases = case_words(flags.sweep);
  plan.sweep.seed = sweep.seed;
  for (const auto& [flag, value] : flags.measuring) {
    plan.sweep.measuring.push_back(flag);
    plan.sweep.measuring.push_back(value);
  }
  for (const DeviceInfo& device : choice.devices) {
    plan.sweep.devices.push_back(device.device);
    plan.exact = plan.exact && device.simulated;
  }
  return plan;
}

int parse_rounds(const std::string& text, std::string_view flag, int standard) {
  if (text.empty()) return standard;
  if (text == "0" && flag == "--confirm-rounds") return 0;
  const std::int64_t rounds = parse_count(text, flag);
  if (rounds <= kMaxRounds) return static_cast<int>(rounds);
  throw UsageError(fmt::format("{}: {} is above {}", flag, rounds, kMaxRounds));
}

}  // namespace rooflash
