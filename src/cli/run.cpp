// rooflash run: a sweep, verified and timed, to a record and a table.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/kept_runs.hpp"
#include "cli/outputs.hpp"
#include "cli/report_data.hpp"
#include "cli/sweep_run.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "core/units.hpp"
#include "record/writer.hpp"
#include "report/plot.hpp"
#include "report/table.hpp"
#include "worker/driver/interrupt.hpp"

namespace rooflash {
namespace {

struct RunFlags {
  SweepFlags sweep;
  std::string l2 = "cold";
  std::string power = "burst";
  std::string counters = "hbm";
  std::string verify = "on";
  std::string warmup = "auto";
  std::string min_samples;
  std::string max_samples;
  std::string max_noise;
  std::string max_time;
  std::string timeout = "60s";
  std::string sram;
  std::vector<std::string> outputs;
  bool json = false;
  bool resume = false;
  bool dry_run = false;
  bool no_progress = false;
  bool plot = false;
  bool profile = false;
};

// Launches of one case; all samples are kept in the record.
std::int64_t parse_launches(std::string_view text, std::string_view flag) {
  constexpr std::int64_t kMost = 100'000;
  const std::int64_t launches = parse_repetitions(text, flag);
  if (launches > kMost)
    throw UsageError(fmt::format("{}: {}x is above {}x", flag, launches, kMost));
  return launches;
}

void set_warmup(RunOptions& options, const std::string& text) {
  constexpr std::string_view kFlag = "--warmup";
  if (text == "auto") return;
  if (text.empty() || text.front() < '0' || text.front() > '9') {
    throw UsageError(
        fmt::format("{}: '{}' is neither auto, a time nor a number of launches", kFlag,
                    printable(text)),
        "write auto (until the clock settles), a time such as 20ms, or launches such as 10x");
  }
  if (options.power == "sustained") {
    throw UsageError("--warmup and --power sustained exclude each other",
                     "under lasting load a case warms up until the clock has settled");
  }
  if (text.back() == 'x') {
    options.warmup_launches = parse_launches(text, kFlag);
  } else {
    options.warmup_s = parse_limit(text, kFlag);
  }
}

// Where one bound is given, it moves the default of the other.
void set_samples(RunOptions& options, const std::string& least, const std::string& most) {
  if (!least.empty()) options.min_samples = parse_launches(least, "--min-samples");
  if (most.empty()) {
    options.max_samples = std::max(options.max_samples, options.min_samples);
    return;
  }
  options.max_samples = parse_launches(most, "--max-samples");
  if (least.empty()) options.min_samples = std::min(options.min_samples, options.max_samples);
  if (options.max_samples < options.min_samples) {
    throw UsageError(fmt::format("--max-samples: {}x is below the {}x of --min-samples",
                                 options.max_samples, options.min_samples));
  }
}

RunOptions options_of(const RunFlags& flags, const std::vector<DeviceInfo>& devices) {
  RunOptions options;
  options.l2 = require_choice(flags.l2, "--l2", {"cold", "warm"});
  options.power = require_choice(flags.power, "--power", {"burst", "sustained"});
  options.counters = require_choice(flags.counters, "--counters", {"hbm", "none", "force"});
  options.verify = require_choice(flags.verify, "--verify", {"on", "off", "only"});
  set_warmup(options, flags.warmup);
  set_samples(options, flags.min_samples, flags.max_samples);
  if (!flags.max_noise.empty()) options.max_noise = parse_percent(flags.max_noise, "--max-noise");
  if (!flags.max_time.empty()) options.max_time_s = parse_limit(flags.max_time, "--max-time");
  if (!flags.sram.empty()) {
    options.sram_bytes = parse_bytes(flags.sram, "--sram");
    for (const DeviceInfo& device : devices) {
      if (device.simulated) continue;
      throw UsageError(
          fmt::format("--sram sets the SRAM of a simulated GPU; {} is a real one", device.device),
          "add --device sim:h200");
    }
  }
  return options;
}

// The command that goes on with an interrupted run, for a shell.
std::string resume_command(const std::vector<std::string>& argv) {
  std::vector<std::string> words = argv;
  if (std::find(argv.begin(), argv.end(), "--resume") == argv.end()) words.emplace_back("--resume");
  return shell_command(words);
}

// A run for a profiler around it: nothing of rooflash's own but the launches.
void prepare_profile(SweepRun& run) {
  for (const DeviceInfo& device : run.devices) {
    if (!device.simulated) continue;
    throw UsageError(
        fmt::format("--profile: {} is a model, so there is nothing to profile", device.device),
        "name a GPU: --device cuda:0");
  }
  run.options.profile = true;
  run.options.verify = "off";
  run.options.counters = "none";
  run.ceilings = false;
}

// Flags typed beside --profile that would have no effect; what a configuration file sets may stand.
void refuse_measuring(const std::vector<std::string>& argv,
                      const std::vector<const CLI::Option*>& measuring) {
  for (const CLI::Option* option : measuring) {
    const std::string name = option->get_name();
    for (const std::string& word : argv) {
      if (word != name && !word.starts_with(name + "=")) continue;
      throw UsageError(fmt::format("--profile and {} exclude each other", name),
                       "a profiled launch is neither timed, verified nor counted by rooflash");
    }
  }
}

std::string profiled_lines(const Record& record) {
  std::string text;
  for (const Row& row : record.rows) {
    text +=
        fmt::format("{:<11}  {}  {}\n", to_string(row.status), row.case_id,
                    row.status == Status::ok ? "launched once, not timed" : printable(row.reason));
  }
  return text;
}

int run(const Context& context, const RunFlags& flags) {
  SweepRun run;
  run.argv = context.argv;
  run.sweep = resolve_sweep(flags.sweep);
  const DeviceChoice choice = choose_devices(
      run.sweep.devices.empty() ? std::vector<std::string>{flags.profile ? "cuda:0" : "auto"}
                                : run.sweep.devices);
  run.devices = choice.devices;
  run.options = options_of(flags, run.devices);
  run.timeout_s = parse_limit(flags.timeout, "--timeout");
  // A record without times does not take the place of the last one that has some.
  run.outputs = flags.outputs.empty() && !flags.dry_run && !flags.profile
                    ? std::vector{kept_run_path(0)}
                    : flags.outputs;
  run.keeps_previous = flags.outputs.empty();
  if (flags.profile) prepare_profile(run);
  run.resume = flags.resume;
  run.quiet = context.quiet;
  run.progress = !flags.no_progress;
  if (!context.quiet) announce(choice);
  if (flags.dry_run) {
    print_plan(run.sweep, plan_devices(run.devices));
    return 0;
  }
  const SweepResult result = run_sweep(run);
  print_result(flags.json      ? record_text(result.record)
               : flags.profile ? profiled_lines(result.record)
                               : render_table(result.record, table_options(context.color),
                                              noise_sentence(result.record)));
  if (flags.plot && !flags.json && !flags.profile) {
    print_result("\n" + render_plot(result.record, table_options(context.color)));
  }
  if (!context.quiet && !run.outputs.empty()) {
    std::vector<std::string> shown;
    for (const std::string& path : run.outputs) shown.push_back(printable(path));
    print_message(fmt::format("saved {}", fmt::join(shown, ", ")));
    const std::string& first = run.outputs.front();
    if (result.signal != 0) {
      print_message("interrupted; go on with: " + printable(resume_command(context.argv), 4000));
    } else if (run.keeps_previous) {
      print_message("next: rooflash report @last -o report.html");
    } else if (first.ends_with(".json")) {
      const std::string page = first.substr(0, first.size() - 5) + ".html";
      print_message(printable(
          fmt::format("next: rooflash report {} -o {}", shell_word(first), shell_word(page)),
          10000));
    }
  }
  return exit_code_of(result);
}

}  // namespace

void add_run(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("run", "sweep kernels over shapes: verify, time, count");
  command->footer(
      "Example: rooflash run --kernel fa2,naive --seqlen 512:16k:x2 --headdim 64,128 -o "
      "out/a.json\n"
      "Every row is saved as it ends: --resume goes on after a crash or Ctrl-C. An existing "
      "output\n"
      "is replaced only when the run is over.");
  auto flags = std::make_shared<RunFlags>();
  add_sweep_flags(*command, flags->sweep);
  const char* const kMeasure = "How they are measured";
  std::vector<const CLI::Option*> measuring;
  const auto option = [&](const char* name, std::string& value, const char* help) {
    measuring.push_back(command->add_option(name, value, help)->group(kMeasure));
  };
  const auto choice = [&](const char* name, std::string& value,
                          const std::vector<std::string>& choices, const char* help) {
    measuring.push_back(add_choice(*command, name, value, choices, help)->group(kMeasure));
  };
  choice("--verify", flags->verify, {"on", "off", "only"}, "default on; only: no timing");
  add_choice(*command, "--l2", flags->l2, {"cold", "warm"},
             "default cold: flushed before each sample")
      ->group(kMeasure);
  choice("--power", flags->power, {"burst", "sustained"},
         "default burst; sustained: busy for seconds before and between samples");
  choice("--counters", flags->counters, {"hbm", "none", "force"},
         "default hbm; force: also where a profiler seems attached");
  option("--warmup", flags->warmup,
         "default auto: until the SM clock settles; or a time, 20ms, or launches, 10x");
  option("--min-samples", flags->min_samples, "at least so many samples (default 10x)");
  option("--max-samples", flags->max_samples, "at most so many (default 200x)");
  option("--max-noise", flags->max_noise, "stop when the median is known to within this (0.5%)");
  option("--max-time", flags->max_time, "of sampling one case (default 400ms)");
  command
      ->add_option("--timeout", flags->timeout,
                   "a case without a row after this, beyond --max-time and --warmup, is killed "
                   "(default 60s)")
      ->group(kMeasure);
  option("--sram", flags->sram, "SRAM of one SM of a simulated GPU, such as 64k");
  command
      ->add_flag("--profile", flags->profile,
                 "one launch a case in the NVTX range rooflash@timed, for ncu or nsys around this "
                 "command: no timing, verification or counters")
      ->group(kMeasure);
  const char* const kOutput = "Output";
  add_repeatable(*command, "-o,--output", flags->outputs,
                 "FILE.json, .csv, .md or .html (repeatable)")
      ->group(kOutput);
  command->add_flag("--json", flags->json, "the record on stdout instead of the table")
      ->group(kOutput);
  command->add_flag("--plot", flags->plot, "a roofline in characters after the table")
      ->group(kOutput);
  command->add_flag("--resume", flags->resume, "go on with an interrupted run")->group(kOutput);
  command->add_flag("--dry-run", flags->dry_run, "print the cases and run nothing")->group(kOutput);
  command->add_flag("--no-progress", flags->no_progress, "no progress on stderr")->group(kOutput);
  command->callback([&context, flags, measuring] {
    context.action = [&, flags, measuring] {
      if (flags->profile) refuse_measuring(context.argv, measuring);
      return run(context, *flags);
    };
  });
}

}  // namespace rooflash
