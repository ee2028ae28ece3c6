// rooflash history: how the time of each case moved over many records.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/history_output.hpp"
#include "cli/outputs.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
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

// The files that `paths` name: of a folder all .json files below it. Each once.
std::vector<std::string> record_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      if (path != "-" && !fs::exists(path, error)) {
        throw UsageError("there is no file or folder " + printable(path));
      }
      files.push_back(path);
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
    files.insert(files.end(), found.begin(), found.end());
  }
  std::vector<std::string> once;
  std::set<std::string> seen;
  for (const std::string& file : files) {
    std::error_code error;
    const fs::path canonical = file == "-" ? fs::path(file) : fs::canonical(file, error);
    if (seen.insert(error ? file : canonical.string()).second) once.push_back(file);
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

// Files that are no records are skipped and named: one bad file of many years must not hide the
// rest.
History read_history(const HistoryFlags& flags, const std::vector<std::string>& files) {
  const Filter filter = Filter::all_of(flags.filters, Filter::Names::any);
  History history;
  history.threshold = threshold_of(flags.threshold);
  SeriesBuilder builder;
  for (const std::string& file : files) {
    try {
      Record record = read_record(file);
      std::erase_if(record.rows, [&](const Row& row) {
        return !filter.matches(row.kernel, row.problem, row.device);
      });
      builder.add(record, file);
    } catch (const UsageError& error) {
      print_message(fmt::format("warning: skipped: {}", error.what()));
      history.skipped.push_back({file, error.what()});
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
  const std::vector<std::string> files = record_files(flags.paths);
  if (!flags.output.empty()) check_output_file(flags.output, files);
  const History history = read_history(flags, files);
  const std::string text = flags.format == "csv"    ? history_csv(history)
                           : flags.format == "json" ? history_json(history)
                                                    : history_table(history, flags.all);
  if (flags.output.empty()) {
    print_result(text);
  } else {
    write_file_atomic(flags.output, text);
    if (!context.quiet) print_message("saved " + printable(flags.output));
  }
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
      "their own. Files that are no records are named and skipped, and the exit code is 6.");
  auto flags = std::make_shared<HistoryFlags>();
  command->add_option("PATH", flags->paths, "records, and folders with records in .json files")
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
