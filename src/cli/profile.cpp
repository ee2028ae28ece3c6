// rooflash profile: one case under the counters, or the command line of a profiler for it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/profile_tool.hpp"
#include "cli/run_rows.hpp"
#include "cli/sweep_run.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "profile/profile.hpp"
#include "record/environment.hpp"
#include "record/writer.hpp"
#include "sweep/parse_case.hpp"
#include "worker/driver/connection.hpp"

namespace rooflash {
namespace {

struct ProfileFlags {
  std::string case_id;
  SweepFlags sweep;
  std::string set = "all";
  std::string metrics;
  std::string l2 = "cold";
  std::string verify = "on";
  std::string timeout = "120s";
  std::string format = "table";
  std::string output;
  ToolFlags tool;
};

std::vector<std::string> set_choices() {
  std::vector<std::string> choices = metric_set_names();
  choices.emplace_back("all");
  return choices;
}

// The one case that the id and the axis flags name.
Sweep resolve(const ProfileFlags& flags) {
  if (!flags.case_id.empty() && !flags.sweep.suite.empty()) {
    throw UsageError("a case and --suite exclude each other",
                     "name a case, or select one of the suite by --filter");
  }
  const Axes axes = flags.case_id.empty() ? Axes{} : axes_of(parse_case_id(flags.case_id));
  if (axes.options.contains("sram")) {
    throw UsageError("sram is of simulated GPUs: there is nothing to profile on those",
                     "leave the sram part out of the case");
  }
  Sweep sweep = resolve_sweep(flags.sweep, axes);
  sweep.order = Order::grid;  // several cases are told in this order
  return sweep;
}

Case one_case(const Sweep& sweep, const std::vector<PlanDevice>& on) {
  const std::vector<Case> cases = sweep.plan(on);
  if (cases.size() > 1) {
    std::vector<std::string> first;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, cases.size()); ++i) {
      first.push_back(case_id(cases[i].kernel, cases[i].problem));
    }
    throw UsageError(
        fmt::format("profile takes one case, and these are {}: {}{}", cases.size(),
                    fmt::join(first, ", "), cases.size() > first.size() ? ", ..." : ""),
        "name one of them, or narrow the axis flags (`rooflash list cases` takes the same)");
  }
  const Case& one = cases.front();
  if (!one.unsupported_reason.empty()) {
    throw UsageError(
        fmt::format("{}: {}", case_id(one.kernel, one.problem), one.unsupported_reason),
        "`rooflash list kernels` shows what each kernel takes");
  }
  return one;
}

[[noreturn]] void refuse_simulated(const std::string& device) {
  throw UsageError(
      fmt::format("{} is a model: it has no counters, so there is nothing to profile", device),
      "name a GPU (--device cuda:0); `rooflash run` shows what the model predicts");
}

DeviceInfo one_device(const std::vector<std::string>& elements) {
  DeviceChoice choice;
  try {
    // Not "auto", which would fall back to a simulated GPU.
    const bool automatic = elements.empty() || elements == std::vector<std::string>{"auto"};
    choice = choose_devices(automatic ? std::vector<std::string>{"cuda:0"} : elements);
  } catch (const Error& error) {
    if (error.code() != ExitCode::no_gpu) throw;
    throw Error(ExitCode::no_gpu, error.what(),
                "profile reads hardware counters of a GPU; without one `rooflash list metrics` and "
                "`rooflash profile --tool ncu --print` work");
  }
  if (choice.devices.size() != 1) {
    throw UsageError(
        fmt::format("--device: profile takes one device, and these are {}", choice.devices.size()));
  }
  if (choice.devices.front().simulated) refuse_simulated(choice.devices.front().device);
  return choice.devices.front();
}

std::vector<std::string> split_metrics(const std::string& text) {
  constexpr std::size_t kMost = 200;
  std::vector<std::string> names;
  std::size_t begin = 0;
  while (begin <= text.size()) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string name = text.substr(begin, end - begin);
    const bool sound = std::all_of(name.begin(), name.end(), [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '.';
    });
    if (name.empty() || !sound || name.size() > kMost || name.find('.') == std::string::npos) {
      throw UsageError(fmt::format("--metrics: '{}' is no name of a metric", printable(name)),
                       "names look like dram__bytes_read.sum; `rooflash list metrics` has some");
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    begin = end + 1;
  }
  return names;
}

// Refuses the whole list where one name is wrong, with every one that is.
void check_names(const MetricAnswer& answer) {
  if (answer.refused.empty()) return;
  std::vector<std::string> all;
  for (const auto& [name, reason] : answer.refused) {
    all.push_back(fmt::format("{} ({})", printable(name), printable(reason, 500)));
  }
  throw UsageError(fmt::format("--metrics: {}", fmt::join(all, "; ")),
                   "nothing was run; `rooflash list metrics` explains the common ones");
}

std::vector<MetricSet> chosen_sets(const ProfileFlags& flags,
                                   const std::vector<std::string>& metrics,
                                   const std::string& chip) {
  if (!metrics.empty()) return {named_metrics(chip, metrics)};
  std::vector<MetricSet> sets = metric_sets(chip);
  if (sets.empty()) {
    throw Error(ExitCode::incomplete,
                fmt::format("there are no metric sets for the chip '{}'", printable(chip)),
                "name metrics with --metrics, or use --tool ncu");
  }
  std::erase_if(sets,
                [&](const MetricSet& set) { return flags.set != "all" && set.name != flags.set; });
  return sets;
}

int exit_code(const Profile& profile) {
  if (profile.row.status == Status::wrong) return static_cast<int>(ExitCode::wrong);
  if (is_incomplete(profile.row)) return static_cast<int>(ExitCode::incomplete);
  if (profile.row.status != Status::ok) return static_cast<int>(ExitCode::nothing_ran);
  // What was asked for is the counters.
  for (const MeasuredSet& set : profile.sets) {
    for (const MeasuredMetric& one : set.metrics) {
      if (one.value) return 0;
    }
  }
  return static_cast<int>(ExitCode::incomplete);
}

int profile_natively(const Context& context, const ProfileFlags& flags, const Sweep& sweep,
                     const std::vector<std::string>& metrics) {
  const double timeout_s = parse_limit(flags.timeout, "--timeout");
  const DeviceInfo device = one_device(sweep.devices);
  const Case one = one_case(sweep, plan_devices({device}));
  if (!flags.output.empty()) check_output_path(flags.output);

  Connection connection(worker_path(), device.device);
  const Hello hello = connection.start();
  const MetricAnswer answer = connection.metrics(metrics, timeout_s);
  if (answer.status != "ok") {
    throw Error(ExitCode::incomplete,
                fmt::format("nothing can be counted on {} ({})", device.device, answer.status),
                printable(answer.reason, 1000));
  }
  check_names(answer);
  const std::vector<MetricSet> sets = chosen_sets(flags, metrics, answer.chip);
  ProfileRequest request;
  request.request.kernel = one.kernel;
  request.request.problem = one.problem;
  request.request.seed = sweep.seed;
  request.request.options.l2 = flags.l2;
  request.request.options.verify = flags.verify;
  request.request.options.counters = "none";
  for (const MetricSet& set : sets) {
    for (const MetricGroup& group : set.groups) {
      request.groups.emplace_back();
      for (const Metric& metric : group) request.groups.back().push_back(metric.name);
    }
  }
  Profile profile = make_profile(sets, connection.profile(request, timeout_s));
  profile.tool = tool_info();
  profile.device = hello.device;
  profile.driver = hello.environment.driver;
  profile.l2 = flags.l2;
  if (!flags.output.empty()) {
    write_file_atomic(flags.output, profile_json(profile));
    if (!context.quiet) print_message(fmt::format("saved {}", printable(flags.output)));
  }
  print_result(flags.format == "json" ? profile_json(profile)
                                      : profile_text(profile, table_options("never").width));
  return exit_code(profile);
}

int profile(const Context& context, const ProfileFlags& flags) {
  require_choice(flags.set, "--set", set_choices());
  require_choice(flags.l2, "--l2", {"cold", "warm"});
  require_choice(flags.verify, "--verify", {"on", "off"});
  require_choice(flags.format, "--format", {"table", "json"});
  const std::vector<std::string> metrics =
      flags.metrics.empty() ? std::vector<std::string>{} : split_metrics(flags.metrics);
  const Sweep sweep = resolve(flags);
  const Case one = one_case(sweep, {{"any", 0}});  // before a device is looked for
  if (flags.tool.name.empty()) {
    if (flags.tool.print) {
      throw UsageError("--print prints the command of a profiler, and none is named",
                       "add --tool ncu or --tool nsys");
    }
    return profile_natively(context, flags, sweep, metrics);
  }
  for (const std::string& device : sweep.devices) {
    if (device.starts_with("sim:")) refuse_simulated(printable(device));
  }
  if (sweep.devices.size() > 1) throw UsageError("--device: profile takes one device");
  return profile_with_tool(context, flags.tool,
                           {one, sweep.devices.empty() ? "cuda:0" : sweep.devices.front(),
                            sweep.seed, flags.l2, flags.set, metrics, flags.output});
}

}  // namespace

void add_profile(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("profile", "one case in detail: pipes, stalls, caches, what to try next");
  command->footer(
      "Example: rooflash profile fa2/fwd/bf16/b2.h16.kv16/q8192.k8192/d128/causal --set stalls\n"
      "A set takes as many passes as its metrics need, each of them a launch of its own; their "
      "number\n"
      "is shown. No time is reported: `rooflash run` times.");
  auto flags = std::make_shared<ProfileFlags>();
  command->add_option("CASE", flags->case_id,
                      "a case id, as in records and `rooflash list cases`; axis flags change it");
  add_sweep_flags(*command, flags->sweep);
  const char* const kWhat = "What is counted";
  add_choice(*command, "--set", flags->set, set_choices(), "default: all")->group(kWhat);
  command
      ->add_option("--metrics", flags->metrics,
                   "CUPTI's names, comma-separated, in place of a set; one wrong name refuses all")
      ->group(kWhat);
  add_choice(*command, "--l2", flags->l2, {"cold", "warm"},
             "default: cold, flushed before each pass")
      ->group(kWhat);
  add_choice(*command, "--verify", flags->verify, {"on", "off"}, "default: on")->group(kWhat);
  command->add_option("--timeout", flags->timeout, "of the whole case (default 120s)")
      ->group(kWhat);
  const char* const kOutput = "Output";
  add_choice(*command, "--format", flags->format, {"table", "json"}, "default: table")
      ->group(kOutput);
  command
      ->add_option("-o,--output", flags->output,
                   "the profile as JSON in this file; with --tool the tool's report")
      ->group(kOutput);
  add_choice(*command, "--tool", flags->tool.name, {"ncu", "nsys"},
             "runs the case under Nsight Compute or Nsight Systems")
      ->group(kOutput);
  command->add_flag("--print", flags->tool.print, "with --tool: prints the command, runs nothing")
      ->group(kOutput);
  command->callback(
      [&context, flags] { context.action = [&, flags] { return profile(context, *flags); }; });
}

}  // namespace rooflash
