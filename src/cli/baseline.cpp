// rooflash baseline: named records that a gate holds against, kept with the sources.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "cli/baseline_folder.hpp"
#include "cli/commands.hpp"
#include "cli/folder_lock.hpp"
#include "cli/record_reference.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/rounds.hpp"
#include "gate/shift.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "report/pivot.hpp"
#include "report/table.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderHint = "name another folder with --baseline-dir";

struct BaselineFlags {
  std::string folder;
  std::string name;
  std::vector<std::string> records;
  bool force = false;
};

// The record that `text` names, fit to be a baseline unless --force says otherwise. Throws
// UsageError.
Record fit_record(const std::string& text, const BaselineFlags& flags) {
  Record record = read_record(find_record(text).path);
  const std::string reason = unfit_for_baseline(record);
  if (reason.empty() || (flags.force && !record.rows.empty())) return record;
  throw UsageError(
      fmt::format("{} is unfit for a baseline: {}", printable(text), printable(reason)),
      "measure it anew; --force keeps it, and such rows are never compared");
}

void write_baseline(const Context& context, const BaselineFile& file, const Record& record) {
  make_folder(fs::path(file.path).parent_path().string(), kFolderHint);
  write_file_atomic(file.path, record_text(record));
  if (context.quiet) return;
  const int rounds = end_of_rounds(record);
  print_message(fmt::format("saved {}: {}", printable(file.path), counted(rounds, "round")));
  const bool simulated = !record.rows.empty() && record.rows.front().simulated;
  if (!simulated && rounds < static_cast<int>(kLeastBaseRounds)) {
    print_message(fmt::format("warning: times are judged from {} rounds on: promote more runs",
                              kLeastBaseRounds));
  }
}

int save(const Context& context, const BaselineFlags& flags) {
  require_baseline_name(flags.name);
  const std::string folder = baseline_folder(flags.folder);
  Record record = fit_record(flags.records.front(), flags);
  for (std::size_t i = 1; i < flags.records.size(); ++i) {
    const std::string reason = add_to_baseline(record, fit_record(flags.records[i], flags));
    if (reason.empty()) continue;
    throw Error(ExitCode::not_comparable,
                fmt::format("{} does not fit {}: {}", printable(flags.records[i]),
                            printable(flags.records.front()), printable(reason)),
                "save it as a baseline of its own");
  }
  const std::vector<BaselinePart> parts = baseline_parts(record);
  const FolderLock lock(folder, FolderLock::IfHeld::wait, kFolderHint);
  for (const BaselinePart& part : parts) {
    const BaselineFile file =
        baseline_file(folder, flags.name, part.device_class, part.record.suite);
    std::error_code error;
    if (!fs::exists(file.path, error) || flags.force) continue;
    throw UsageError(fmt::format("{} exists", printable(file.path)),
                     "--force replaces it; rooflash baseline promote adds to it");
  }
  for (const BaselinePart& part : parts) {
    write_baseline(context, baseline_file(folder, flags.name, part.device_class, part.record.suite),
                   part.record);
  }
  return 0;
}

int promote(const Context& context, const BaselineFlags& flags) {
  require_baseline_name(flags.name);
  const std::string folder = baseline_folder(flags.folder);
  // What another promote adds between the reading and the writing would be lost. A folder that is
  // not there is not made for it: no baseline is found below.
  std::optional<FolderLock> lock;
  std::error_code error;
  if (fs::is_directory(folder, error)) {
    lock.emplace(folder, FolderLock::IfHeld::wait, kFolderHint);
  }
  for (const std::string& text : flags.records) {
    for (BaselinePart& part : baseline_parts(fit_record(text, flags))) {
      const BaselineFile file =
          find_baseline(folder, flags.name, part.device_class, part.record.suite);
      Record stored = read_record(file.path);
      const std::string reason = add_to_baseline(stored, part.record);
      if (!reason.empty()) {
        throw Error(ExitCode::not_comparable,
                    fmt::format("{} does not fit {}: {}", printable(text), printable(file.path),
                                printable(reason)),
                    "rooflash baseline save --force starts it anew");
      }
      write_baseline(context, file, stored);
    }
  }
  return 0;
}

std::size_t cases_of(const Record& record) {
  std::set<std::string> cases;
  for (const Row& row : record.rows) cases.insert(row.case_id);
  return cases.size();
}

int list(const Context& context, const BaselineFlags& flags) {
  const std::string folder = baseline_folder(flags.folder);
  const std::vector<BaselineFile> files = list_baselines(folder);
  if (files.empty()) {
    if (!context.quiet) print_message(fmt::format("no baseline in {}", printable(folder)));
    return 0;
  }
  std::string text =
      fmt::format("{:<12} {:<32} {:<16} {:>6} {:>6}  {:<20} {:<12} {}\n", "name", "gpu", "suite",
                  "cases", "rounds", "date", "commit", "fingerprint");
  for (const BaselineFile& file : files) {
    text += fmt::format("{:<12} {:<32} {:<16} ", printable(file.name), printable(file.gpu),
                        printable(file.suite));
    try {
      const Record record = read_record(file.path);
      text += fmt::format("{:>6} {:>6}  {:<20} {:<12} {}\n", cases_of(record),
                          end_of_rounds(record), printable(record.environment.date),
                          printable(record.tool.commit, 12), fingerprint(record));
    } catch (const UsageError& error) {
      text += fmt::format("unreadable: {}\n", error.what());
    }
  }
  print_result(text);
  return 0;
}

// The files of a baseline, one at least.
std::vector<BaselineFile> files_of(const BaselineFlags& flags) {
  require_baseline_name(flags.name);
  const std::string folder = baseline_folder(flags.folder);
  std::vector<BaselineFile> files = list_baselines(folder, flags.name);
  if (files.empty()) find_baseline(folder, flags.name, "", "");
  return files;
}

int show(const Context& context, const BaselineFlags& flags) {
  for (const BaselineFile& file : files_of(flags)) {
    const Record record = read_record(file.path);
    print_result(fmt::format("{}  fingerprint {}, seed {}, {}\n\n{}\n", printable(file.path),
                             fingerprint(record), record.seed,
                             counted(end_of_rounds(record), "round"),
                             render_table(record, table_options(context.color))));
  }
  return 0;
}

int remove(const Context& context, const BaselineFlags& flags) {
  for (const BaselineFile& file : files_of(flags)) {
    std::error_code error;
    if (!fs::remove(file.path, error)) {
      throw UsageError(fmt::format("cannot remove {}: {}", printable(file.path), error.message()));
    }
    // Folders that are empty now go too; others stay.
    const fs::path gpu = fs::path(file.path).parent_path();
    fs::remove(gpu, error);
    fs::remove(gpu.parent_path(), error);
    if (!context.quiet) print_message("removed " + printable(file.path));
  }
  return 0;
}

}  // namespace

void add_baseline(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("baseline", "named records that a gate holds against");
  command->footer(
      "Example: rooflash run --suite quickstart --rounds 7 -o main.json\n"
      "         rooflash baseline save main main.json\n"
      "         rooflash gate --baseline main --suite quickstart\n"
      "One file for each GPU model and suite; the last 10 rounds are kept.");
  command->require_subcommand(1);
  auto flags = std::make_shared<BaselineFlags>();
  using Run = int (*)(const Context&, const BaselineFlags&);
  const auto topic = [&](const char* name, const char* help, Run run) {
    CLI::App* one = command->add_subcommand(name, help);
    one->add_option("--baseline-dir", flags->folder,
                    "where baselines lie (default: ROOFLASH_BASELINE_DIR, else baselines)");
    one->callback([&context, flags, run] {
      context.action = [&, flags, run] { return run(context, *flags); };
    });
    return one;
  };
  const auto named = [&](CLI::App* one) {
    one->add_option("NAME", flags->name, "letters, digits, '.', '_' and '-'")->required();
    return one;
  };
  const auto with_records = [&](CLI::App* one, const char* force) {
    one->add_option("RECORD", flags->records,
                    fmt::format("{}; several are rounds of one baseline", kRecordHelp))
        ->required();
    one->add_flag("--force", flags->force, force);
  };
  with_records(named(topic("save", "make a baseline", save)),
               "replace what is there, and keep rows that are unfit");
  with_records(
      named(topic("promote", "add runs to a baseline, and keep the last 10 rounds", promote)),
      "keep rows that are unfit");
  topic("list", "what there is", list);
  named(topic("show", "its table", show));
  named(topic("rm", "remove it, for all GPUs and suites", remove));
}

}  // namespace rooflash
