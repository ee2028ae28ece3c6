// rooflash history: how the time of each case moved over many records.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/history_output.hpp"
#include "cli/outputs.hpp"
#include "cli/record_reference.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/json.hpp"
#include "record/reader.hpp"
#include "sweep/filter.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

struct HistoryFlags {
  std::vector<std::string> paths;
  std::vector<std::string> filters;
  std::string threshold;
  std::string format = "table";
  std::string output;
  bool all = false;
};

struct NamedFile {
  std::string path;
  std::string name;        // that the user knows it by
  bool in_folder = false;  // found in a folder, not named itself
};

// The files that `paths` name: of a folder all .json files below it. Each once.
std::vector<NamedFile> record_files(const std::vector<std::string>& paths) {
  std::vector<NamedFile> files;
  for (const RecordReference& reference : find_records(paths)) {
    const std::string& path = reference.path;
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (path != "-" && !fs::exists(path, error)) {
        throw UsageError("there is no file or folder " + printable(path));
      }
      files.push_back({path, reference.name()});
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(
             path, fs::directory_options::skip_permission_denied, error)) {
      if (entry.path().extension() == ".json") found.push_back(entry.path().string());
    }
    if (error) {
      throw UsageError(fmt::format("cannot read {}: {}", printable(path), error.message()));
    }
    std::sort(found.begin(), found.end());
    for (const std::string& file : found) files.push_back({file, file, true});
  }
  std::vector<NamedFile> once;
  std::set<std::string> seen;
  for (const NamedFile& file : files) {
    std::error_code error;
    const fs::path canonical = file.path == "-" ? fs::path("-") : fs::canonical(file.path, error);
    if (seen.insert(error ? file.path : canonical.string()).second) once.push_back(file);
  }
  return once;
}

double threshold_of(const std::string& text) {
  if (text.empty()) return kChangeThreshold;
  const double threshold = parse_percent(text, "--threshold");
  if (!(threshold > 0) || threshold > 1) {
    throw UsageError(
        fmt::format("--threshold: '{}' is not above 0% and at most 100%", printable(text)),
        "write a percentage, such as 2%");
  }
  return threshold;
}

// What other files of rooflash lack, and a record that is broken still has. A verdict of the gate
// has a schema too.
bool is_meant_as_record(const nlohmann::ordered_json& json) {
  return json.is_object() && json.contains("schema") && !json.contains("exit_code");
}

// Faults are skipped and named: one bad file of many years must not hide the rest. Other JSON in a
// folder (ceilings, profiles, verdicts) is none, and is passed over.
History read_history(const Context& context, const HistoryFlags& flags,
                     const std::vector<NamedFile>& files) {
  const Filter filter = Filter::all_of(flags.filters, Filter::Names::any);
  History history;
  history.threshold = threshold_of(flags.threshold);
  SeriesBuilder builder;
  for (const auto& [path, name, in_folder] : files) {
    try {
      const nlohmann::ordered_json json = parse_json(read_text(path), printable(name));
      if (in_folder && !is_meant_as_record(json)) {
        history.passed_over.push_back(path);
        if (!context.quiet) print_message("passed over: " + printable(path) + " is no record");
        continue;
      }
      Record record = record_from_json(json, printable(name));
      std::erase_if(record.rows, [&](const Row& row) {
        return !filter.matches(row.kernel, row.problem, row.device);
      });
      builder.add(record, name);
    } catch (const UsageError& error) {
      print_message(fmt::format("warning: skipped: {}", error.what()));
      history.skipped.push_back({name, error.what()});
    }
  }
  history.series = builder.take();
  for (const Series& series : history.series) {
    history.changes.push_back(change_points(series, history.threshold));
  }
  return history;
}

int show_history(const Context& context, const HistoryFlags& flags) {
  require_choice(flags.format, "--format", {"table", "csv", "json"});
  const std::vector<NamedFile> files = record_files(flags.paths);
  std::vector<std::string> inputs;
  for (const NamedFile& file : files) inputs.push_back(file.path);
  if (!flags.output.empty()) check_output_file(flags.output, inputs);
  const History history = read_history(context, flags, files);
  const std::string text = flags.format == "csv"    ? history_csv(history)
                           : flags.format == "json" ? history_json(history)
                                                    : history_table(history, flags.all);
  deliver_text(context, flags.output, text);
  if (!history.skipped.empty()) return static_cast<int>(ExitCode::incomplete);
  return static_cast<int>(history.series.empty() ? ExitCode::nothing_ran : ExitCode::ok);
}

}  // namespace

void add_history(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("history", "how the time of each case moved over many records");
  command->footer(
      "Example: rooflash history nightly/ -f 'kernel:fa2'\n"
      "Records are ordered by date; other GPUs, definitions and ways of measuring are series of\n"
      "their own. Broken records are named and skipped, and the exit code is 6; other JSON files "
      "of a\n"
      "folder are passed over.");
  auto flags = std::make_shared<HistoryFlags>();
  command
      ->add_option("PATH", flags->paths,
                   fmt::format("{}; or a folder with records in .json files", kRecordHelp))
      ->required();
  add_repeatable(*command, "-f,--filter", flags->filters,
                 "cases that match: 'kernel:fa2 seqlen:>=4k -causal:true' (repeatable)");
  command->add_option("--threshold", flags->threshold,
                      "changes of at least so much are named (default 2%)");
  add_choice(*command, "--format", flags->format, {"table", "csv", "json"}, "default: table");
  command->add_option("-o,--output", flags->output, "the file; none: stdout");
  command->add_flag("--all", flags->all, "list series without a change too");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return show_history(context, *flags); }; });
}

}  // namespace rooflash
