#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cstdlib>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/settings.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/gpu_spec.hpp"
#include "model/suggest.hpp"
#include "record/reader.hpp"

namespace rooflash {
namespace {

constexpr std::string_view kShortHelp =
    R"(rooflash: benchmarks and profiles exact-attention kernels, and says how far each is from the roof.

  rooflash run --suite quickstart -o out/quickstart.json      sweep, verify, time, count
  rooflash report out/quickstart.json -o out/quickstart.html  the roofline report, opens offline
  rooflash list kernels                                       what there is to run
  rooflash --help                                             all commands

With no GPU, --device auto simulates an H200.
)";

constexpr std::string_view kExitCodes =
    R"(Exit codes: 0 done; 1 gate: slower; 2 bad flag, suite, record or path; 3 a wrong result; 4 gate: not
comparable; 5 gate: unsure; 6 a case crashed, failed, timed out or is missing; 7 nothing ran or was
compared; 8 doctor: not fit to measure; 77 no GPU where one was asked for; 129 hung up,
130 interrupted, 143 terminated.)";

std::string version_text() {
  const BuildInfo& build = build_info();
  return fmt::format("rooflash {} ({}{}; {})\n", build.version, build.commit,
                     build.dirty ? ", modified" : "", build.build);
}

// The subcommand that was chosen, or the program itself.
const CLI::App& chosen(const CLI::App& app) {
  const auto subcommands = app.get_subcommands();
  return subcommands.empty() ? app : *subcommands.front();
}

std::vector<std::string> flags_known_to(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : {&chosen(app), &app}) {
    for (const CLI::Option* option : one->get_options()) {
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    }
  }
  return names;
}

// Names of the commands of which `app` still lacks one; empty where it takes none.
std::vector<std::string> commands_missing_in(const CLI::App& app) {
  std::vector<std::string> names;
  if (!app.get_subcommands().empty()) return names;
  for (const CLI::App* one : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(one->get_name());
  }
  return names;
}

std::string help_hint(const CLI::App& app) {
  const CLI::App& sub = chosen(app);
  return fmt::format("see `rooflash{}{} --help`", &sub == &app ? "" : " ",
                     &sub == &app ? "" : sub.get_name());
}

[[noreturn]] void fail_parse(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& sub = chosen(app);
  const std::vector<std::string> commands = commands_missing_in(sub);
  const std::vector<std::string> extra = app.remaining(true);
  if (extra.empty()) {
    const std::string_view what = error.what();
    constexpr std::string_view kTwice = ": At Most 1 required but received ";
    if (const std::size_t at = what.find(kTwice); at != std::string_view::npos) {
      throw UsageError(
          fmt::format("{} is given {} times", what.substr(0, at), what.substr(at + kTwice.size())),
          "give it once; a list has commas, such as a,b");
    }
    constexpr std::string_view kNoValue = ": 1 required ";
    if (const std::size_t at = what.find(kNoValue); at != std::string_view::npos) {
      throw UsageError(fmt::format("{} needs a value", what.substr(0, at)), help_hint(app));
    }
    constexpr std::string_view kNotConverted = "Could not convert: ";  // of a flag
    if (what.starts_with(kNotConverted)) {
      throw UsageError(printable(what.substr(kNotConverted.size())) + " is not true or false",
                       "write true or false, in the flag's environment variable too");
    }
    if (!commands.empty()) {
      throw UsageError(fmt::format("{} needs a command", sub.get_name()),
                       fmt::format("known: {}", fmt::join(commands, ", ")));
    }
    throw UsageError(printable(what), help_hint(app));
  }
  const std::string word = extra.front().substr(0, extra.front().find('='));
  if (word.starts_with('-')) {
    const std::string hint = suggest(word, flags_known_to(app));
    throw UsageError(fmt::format("unknown flag '{}'", printable(word)),
                     hint.starts_with("did you") ? hint : help_hint(app));
  }
  if (commands.empty()) {
    throw UsageError(fmt::format("unexpected argument '{}'", printable(word)), help_hint(app));
  }
  throw UsageError(fmt::format("unknown command '{}'", printable(word)), suggest(word, commands));
}

// A value that a script left empty would else pass for a flag that was not given.
void refuse_empty_values(const CLI::App& app) {
  for (const CLI::App* one = &app;;) {
    for (const CLI::Option* option : one->get_options()) {
      for (const std::string& value : option->results()) {
        if (!value.empty() || option->get_items_expected_max() == 0) continue;
        throw UsageError(fmt::format("{}: the value is empty", option->get_name()),
                         fmt::format("give one, or leave {} out", option->get_name()));
      }
    }
    if (one->get_subcommands().empty()) return;
    one = one->get_subcommands().front();
  }
}

// Here, in the workers and in the executables that a gate runs.
void use_gpus(const std::string& path) {
  if (path == "-") {
    throw UsageError("--gpus: the workers read it too, so it cannot come through stdin",
                     "name a file");
  }
  std::string text;
  try {
    text = read_text(path);
  } catch (const UsageError& error) {
    throw UsageError(fmt::format("--gpus: {}", error.what()), error.hint());
  }
  add_gpu_specs(text, path);
  setenv(kGpusVariable, path.c_str(), 1);
}

int run_action(const Context& context) {
  if (!context.action) throw UsageError("no command given", "see `rooflash --help`");
  require_choice(context.color, "--color", {"auto", "always", "never"});
  return context.action();
}

}  // namespace

int run_command_line(const std::vector<std::string>& argv) {
  if (argv.size() <= 1) {
    print_result(kShortHelp);
    return 0;
  }
  CLI::App app("Benchmarks and profiles exact-attention kernels.", "rooflash");
  app.footer(std::string(kExitCodes));
  app.fallthrough();
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(34);
  Context context;
  context.argv = argv;
  app.set_version_flag(
      "--version", [] { return version_text(); }, "version, commit and build");
  app.add_flag("-q,--quiet", context.quiet, "no messages and no progress, only the result");
  add_choice(app, "--color", context.color, {"auto", "always", "never"}, "NO_COLOR is honoured")
      ->capture_default_str();
  std::string gpus;
  app.add_option("--gpus", gpus,
                 "a file of GPUs and their datasheet peaks, over the built-in list");
  add_run(app, context);
  add_report(app, context);
  add_compare(app, context);
  add_gate(app, context);
  add_export(app, context);
  add_history(app, context);
  add_baseline(app, context);
  add_list(app, context);
  add_verify(app, context);
  add_profile(app, context);
  add_doctor(app, context);
  add_ceilings(app, context);
  add_config(app, context);
  add_completion(app, context);
  Settings settings(app);
  try {
    // CLI11 takes the arguments in reverse order.
    app.parse(std::vector<std::string>(argv.rbegin(), argv.rend() - 1));
  } catch (const CLI::CallForVersion&) {
    print_result(version_text());
    return 0;
  } catch (const CLI::CallForHelp&) {
    print_result(app.help());  // of the subcommand, where one was named
    return 0;
  } catch (const CLI::ParseError& error) {
    fail_parse(app, error);
  }
  refuse_empty_values(app);
  settings.apply();
  context.settings = &settings;
  try {
    if (!gpus.empty()) use_gpus(gpus);
    return run_action(context);
  } catch (const UsageError& error) {
    // What the user did not type may be what is wrong.
    const std::string origin = settings.hint(error.what());
    if (origin.empty()) throw;
    throw UsageError(error.what(), error.hint().empty() ? origin : error.hint() + "\n" + origin);
  }
}

}  // namespace rooflash
