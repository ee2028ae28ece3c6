#include "cli/gate_measure.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/progress.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/rounds.hpp"
#include "record/json.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "report/pivot.hpp"
#include "sweep/repro.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFolderHint = "name another one with -o";

// What must not change while a gate is resumed: the file itself, too.
nlohmann::ordered_json identity(const Executable& executable) {
  struct stat status {};
  stat(executable.path.c_str(), &status);
  return {{"path", fs::absolute(executable.path).lexically_normal().string()},
          {"version", executable.version},
          {"size", status.st_size},
          {"modified", status.st_mtim.tv_sec}};
}

std::string suite_of(const std::vector<const Row*>& rows) {
  nlohmann::ordered_json grids = nlohmann::ordered_json::array();
  for (const Row* row : rows) {
    nlohmann::ordered_json grid;
    for (const auto& [axis, value] : case_axes(row->kernel, row->problem)) grid[axis] = value;
    grids.push_back(std::move(grid));
  }
  const nlohmann::ordered_json suite = {{"summary", "cases that a gate measures again"},
                                        {"grids", std::move(grids)}};
  return suite.dump(1) + "\n";
}

std::string round_path(const std::string& folder, const std::string& stage, int round,
                       const std::string& label) {
  return fmt::format("{}/rounds/{}/{:03}-{}.json", folder, stage, round, label);
}

// They hardly vary, so one round of them is enough unless they were asked for.
bool asks_for_counters(const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), "--counters") != words.end();
}

}  // namespace

GateSession::GateSession(std::string folder, const GateSweep& sweep,
                         std::vector<Executable> executables, bool resume, bool quiet)
    : folder_(std::move(folder)),
      lock_(folder_, FolderLock::IfHeld::refuse, kFolderHint),
      sweep_(sweep),
      executables_(std::move(executables)),
      quiet_(quiet) {
  nlohmann::ordered_json session = {{"cases", sweep.cases},
                                    {"measuring", sweep.measuring},
                                    {"devices", sweep.devices},
                                    {"seed", sweep.seed}};
  for (const Executable& one : executables_) session[one.label] = identity(one);
  const std::string text =
      session.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  const fs::path rounds = fs::path(folder_) / "rounds";
  const std::string file = (rounds / "gate.json").string();
  std::error_code error;
  if (fs::exists(rounds, error)) {
    if (!fs::exists(file, error)) {
      throw UsageError(fmt::format("{} exists and is not a gate's", printable(rounds.string())),
                       "name another folder with -o");
    }
    if (resume) {
      if (read_text(file) == text) return;
      throw UsageError(fmt::format("{}: other executables, cases or flags were measured there",
                                   printable(rounds.string())),
                       "run without --resume to start anew, or name another folder with -o");
    }
    const fs::path old = fs::path(folder_) / "rounds.old";
    fs::remove_all(old, error);
    fs::rename(rounds, old, error);
    if (error) {
      throw UsageError(
          fmt::format("cannot move {}: {}", printable(rounds.string()), error.message()));
    }
    if (!quiet_) {
      print_message(
          fmt::format("an unfinished gate's rounds were moved to {}", printable(old.string())));
    }
  }
  make_folder(rounds.string(), kFolderHint);
  write_file_atomic(file, text);
}

std::vector<std::string> GateSession::stage_words(const std::string& stage,
                                                  const std::vector<const Row*>& only) const {
  std::vector<std::string> words{"run"};
  if (only.empty()) {
    words.insert(words.end(), sweep_.cases.begin(), sweep_.cases.end());
  } else {
    const std::string suite = fmt::format("{}/rounds/{}.json", folder_, stage);
    write_file_atomic(suite, suite_of(only));
    words.insert(words.end(), {"--suite", suite});
  }
  words.insert(words.end(), sweep_.measuring.begin(), sweep_.measuring.end());
  for (const std::string& device : sweep_.devices) {
    words.insert(words.end(), {"--device", device});
  }
  return words;
}

void GateSession::check_plans() const {
  for (const Executable& executable : executables_) {
    std::vector<std::string> words = stage_words("", {});
    words.emplace_back("--dry-run");
    const Ended ended = run_to_end(executable, words, kAnswerTime);
    if (ended.wait_status == 0) continue;
    const int code = ended.code();
    throw Error(
        code > 0 ? static_cast<ExitCode>(code) : ExitCode::incomplete,
        fmt::format("the {} executable cannot plan this sweep: {}", executable.label, ended.text()),
        "both executables must know the flags, kernels and devices that are gated");
  }
}

Record GateSession::measure_once(const Executable& executable,
                                 const std::vector<std::string>& words,
                                 const std::string& path) const {
  const Ended ended = run_to_end(executable, words, std::nullopt);
  std::error_code error;
  if (!fs::exists(path, error)) {
    const int code = ended.code();
    const bool told = code == static_cast<int>(ExitCode::usage) ||
                      code == static_cast<int>(ExitCode::no_gpu) ||
                      code == static_cast<int>(ExitCode::nothing_ran);
    throw Error(told ? static_cast<ExitCode>(code) : ExitCode::incomplete,
                fmt::format("the {} executable gave no record: {}", executable.label,
                            ended.text().empty() ? "it ended well" : ended.text()),
                fmt::format("try it by itself: {} run ... ; --resume goes on from here",
                            printable(executable.path)));
  }
  Record record = read_record(path);
  if (record.complete) return record;
  fs::remove(path, error);
  throw Error(ExitCode::incomplete,
              fmt::format("the {} executable was interrupted: {}", executable.label, ended.text()),
              "repeat the command with --resume: the finished rounds are kept");
}

std::vector<Record> GateSession::measure(const std::string& stage, int rounds, int first_round,
                                         const std::vector<const Row*>& only) {
  make_folder((fs::path(folder_) / "rounds" / stage).string(), kFolderHint);
  const std::vector<std::string> words = stage_words(stage, only);
  std::vector<Record> records(executables_.size());
  Progress progress(static_cast<std::size_t>(rounds) * executables_.size(), !quiet_);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t turn = 0; turn < executables_.size(); ++turn) {
      // Old, new; new, old; ...: neither always meets the card as the other left it.
      const std::size_t which = round % 2 == 0 ? turn : executables_.size() - 1 - turn;
      const Executable& executable = executables_[which];
      const std::string path = round_path(folder_, stage, round, executable.label);
      std::error_code error;
      Record record;
      if (fs::exists(path, error)) {
        record = read_record(path);
      } else {
        std::vector<std::string> own = words;
        const std::uint64_t seed = sweep_.seed + static_cast<std::uint64_t>(first_round + round);
        own.insert(own.end(), {"--seed", std::to_string(seed), "-o", path, "--resume", "--quiet"});
        if (first_round + round > 0 && !asks_for_counters(sweep_.measuring)) {
          own.insert(own.end(), {"--counters", "none"});
        }
        record = measure_once(executable, own, path);
      }
      if (round == 0) {
        records[which] = record;
        records[which].rows.clear();
        records[which].seed = sweep_.seed;
      }
      add_rounds(records[which], record, first_round + round);
      if (!record.rows.empty()) progress.row_done(record.rows.back());
    }
  }
  return records;
}

std::vector<std::string> GateSession::finish(const std::vector<Record>& records) const {
  std::vector<std::string> paths;
  for (std::size_t i = 0; i < executables_.size(); ++i) {
    paths.push_back(fmt::format("{}/{}.json", folder_, executables_[i].label));
    write_file_atomic(paths.back(), record_text(records[i]));
  }
  std::error_code error;
  fs::remove_all(fs::path(folder_) / "rounds", error);
  return paths;
}

}  // namespace rooflash
