#include "cli/sweep_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "cli/kept_runs.hpp"
#include "cli/outputs.hpp"
#include "cli/progress.hpp"
#include "cli/roofs_cache.hpp"
#include "cli/run_rows.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/hash.hpp"
#include "core/units.hpp"
#include "model/gpu_spec.hpp"
#include "record/environment.hpp"
#include "record/json.hpp"
#include "worker/backend.hpp"
#include "worker/driver/connection.hpp"
#include "worker/driver/interrupt.hpp"
#include "worker/driver/journal.hpp"
#include "worker/driver/pool.hpp"

namespace rooflash {
namespace {

constexpr double kEndTimeoutSeconds = 30;  // a profiler may write its report meanwhile

using RowKey = std::tuple<std::string, std::string, int>;
RowKey key_of(const Row& row) {
  return {row.case_id, row.device, row.round};
}

// What a library or a dying worker said may name folders of this machine.
void hide_folders(Row& row) {
  row.reason = without_folders(row.reason);
  row.counters.reason = without_folders(row.counters.reason);
  for (auto& [field, reason] : row.missing) reason = without_folders(reason);
}

class Runner {
 public:
  explicit Runner(const SweepRun& run) : run_(run) {}

  SweepResult execute() {
    plan();
    check_outputs(run_.outputs);
    start_workers();
    open_journal();
    if (run_.ceilings) measure_ceilings();
    const int signal = run_cases();
    if (run_.options.profile) {
      for (Connection& connection : connections_) connection.end(kEndTimeoutSeconds);
    }
    SweepResult result{std::move(record_), 0};
    for (Row& row : rows_) {
      if (row.status != Status::not_run || !row.reason.empty()) continue;
      row.reason = fmt::format("stopped by SIG{} before this case", sigabbrev_np(signal));
      result.signal = signal;
    }
    result.record.complete = result.signal == 0;
    result.record.rows = std::move(rows_);
    save(result);
    return result;
  }

 private:
  void plan() {
    cases_ = run_.sweep.plan(plan_devices(run_.devices));
    std::string text;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const Case& one = cases_[i];
      const auto device =
          std::find_if(run_.devices.begin(), run_.devices.end(),
                       [&](const DeviceInfo& info) { return info.device == one.device; });
      rows_.push_back(blank_row(one, *device, run_.options, run_.sweep.seed));
      index_[key_of(rows_.back())] = i;
      text += fmt::format("{} {} {} {}\n", rows_.back().case_id, rows_.back().definition_hash,
                          one.device, one.round);
    }
    plan_hash_ = hash_hex(text);
  }

  void start_workers() {
    const std::string worker = worker_path();
    record_.tool = tool_info();
    record_.suite = run_.sweep.suite;
    record_.seed = run_.sweep.seed;
    record_.environment = host_environment(run_.argv);
    Environment& environment = record_.environment;
    for (const DeviceInfo& device : run_.devices) {
      connections_.emplace_back(worker, device.device);
      hellos_.push_back(connections_.back().start());
      const Hello& hello = hellos_.back();
      environment.devices.push_back(hello.device);
      if (environment.driver.empty()) environment.driver = hello.environment.driver;
      if (environment.cuda.empty()) environment.cuda = hello.environment.cuda;
      if (environment.cudnn.empty()) {
        environment.cudnn = hello.environment.cudnn;
        environment.cudnn_hash = hello.environment.cudnn_hash;
      }
      if (environment.visible_devices.empty()) {
        environment.visible_devices = hello.environment.visible_devices;
      }
      add_datasheet(hello.device);
      if (!run_.quiet) warn_device(hello.device);
    }
  }

  static void warn_device(const DeviceInfo& device) {
    if (device.other_processes.value_or(0) > 0) {
      print_message(
          fmt::format("warning: {} other processes are on {}; times will vary, and rows "
                      "are flagged shared_gpu\nhint: nvidia-smi lists them",
                      *device.other_processes, device.device));
    }
    if (device.mig.value_or(false)) {
      print_message(
          fmt::format("warning: {} is in MIG mode: a slice has its share of the SMs, the "
                      "L2 and the HBM, so the datasheet's roofs do not hold for it",
                      device.device));
    }
  }

  void add_datasheet(const DeviceInfo& device) {
    const GpuSpec* spec =
        device.simulated ? find_gpu(device.device.substr(4)) : find_gpu_by_name(device.name);
    if (spec == nullptr) return;
    Datasheet sheet = datasheet(*spec);
    const bool known = std::any_of(record_.datasheet.begin(), record_.datasheet.end(),
                                   [&](const Datasheet& one) { return one.gpu == sheet.gpu; });
    if (!known) record_.datasheet.push_back(std::move(sheet));
  }

  void open_journal() {
    if (run_.outputs.empty()) return;
    CaseRequest request;
    request.options = run_.options;
    JournalHeader header{record_.tool,
                         record_.suite,
                         record_.seed,
                         plan_hash_,
                         hash_hex(dump_line(to_json(request)["options"])),
                         record_.environment.devices};
    journal_.emplace(journal_path(), header, run_.resume);
    for (const auto& [row, text] : journal_->rows()) {
      const auto at = index_.find(key_of(row));
      if (at == index_.end()) continue;  // the plan hash rules this out
      const Row& planned = rows_[at->second];
      if (row.definition_hash != planned.definition_hash ||
          case_id(row.kernel, row.problem) != planned.case_id) {
        throw UsageError(fmt::format("{}: the row of {} is not what this run would measure",
                                     printable(journal_path()), printable(row.case_id)),
                         "The file was changed by hand: run without --resume to start anew.");
      }
      if (row.status == Status::not_run) continue;
      rows_[at->second] = row;
      finished_.insert(at->second);
    }
    if (run_.quiet) return;
    if (run_.resume && !finished_.empty()) {
      print_message(
          fmt::format("resuming: {} of {} cases are done", finished_.size(), cases_.size()));
    }
    if (journal_->replaced()) {
      print_message(
          fmt::format("an unfinished run's journal was moved to {}.old; to go on with that run, "
                      "move it back and add --resume",
                      printable(journal_path())));
    }
  }

  std::string journal_path() const { return run_.outputs.front() + ".journal"; }

  void measure_ceilings() {
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      try {
        record_.ceilings.push_back(device_ceilings(connections_[i], hellos_[i], false));
      } catch (const Error& error) {
        if (error.code() == ExitCode::interrupted) throw;
        connections_[i].drop();
        if (run_.quiet) continue;
        print_message(fmt::format("warning: the roofs of {} are unknown: {}",
                                  connections_[i].device(), error.what()));
      }
    }
  }

  int run_cases() {
    std::vector<Job> jobs;
    for (std::size_t i = 0; i < cases_.size(); ++i) {
      const Case& one = cases_[i];
      if (finished_.contains(i)) continue;
      if (!one.unsupported_reason.empty()) {
        rows_[i].status = Status::unsupported;
        rows_[i].reason = one.unsupported_reason;
        continue;
      }
      CaseRequest request{static_cast<std::int64_t>(i),
                          one.kernel,
                          one.problem,
                          one.round,
                          run_.sweep.seed,
                          run_.options};
      jobs.push_back({std::move(request), rows_[i]});
    }
    if (jobs.empty()) return 0;
    Progress progress(jobs.size(), run_.progress && !run_.quiet);
    const double asked_s = run_.options.max_time_s + run_.options.warmup_s.value_or(0);
    // Quantising is timed as long as the kernel.
    const bool quantizes = std::any_of(jobs.begin(), jobs.end(), [](const Job& job) {
      return job.request.problem.dtype == DType::e4m3;
    });
    const double limit_s = run_.timeout_s + asked_s * (quantizes ? 2 : 1);
    return run_jobs(connections_, jobs, limit_s, [&](const Row& row) {
      Row& kept = rows_[index_.at(key_of(row))];
      const std::string repro = kept.repro;
      kept = row;
      kept.repro = repro;
      hide_folders(kept);
      finish_row(kept, ceilings_of(kept.device));
      if (journal_) journal_->append(kept);
      progress.row_done(kept);
      warn_counters(kept);
    });
  }

  // Empty where they are unknown.
  Ceilings ceilings_of(const std::string& device) const {
    for (const Ceilings& one : record_.ceilings) {
      if (one.device == device) return one;
    }
    return {};
  }

  // Once a run: rows are timed all the same, and each keeps its own reason.
  void warn_counters(const Row& row) {
    const std::string& status = row.counters.status;
    if (counters_warned_ || run_.quiet || row.simulated || row.status != Status::ok ||
        status == "ok" || status == "not_requested") {
      return;
    }
    counters_warned_ = true;
    print_message(fmt::format("warning: no hardware counters ({}), rows go on without them: {}",
                              status, printable(row.counters.reason, 600)));
  }

  void save(const SweepResult& result) {
    try {
      keep_previous();
      write_outputs(result.record, run_.outputs);
    } catch (const UsageError& error) {
      throw Error(ExitCode::incomplete, error.what(),
                  fmt::format("The finished rows are kept in {}: repeat the command with --resume.",
                              printable(journal_path())));
    }
    if (journal_ && result.record.complete) journal_->remove();
  }

  void keep_previous() const {
    if (!run_.keeps_previous || run_.outputs.empty()) return;
    const std::string fault = keep_previous_run(run_.resume && !finished_.empty());
    if (!fault.empty()) print_message("warning: the run before is lost: " + fault);
  }

  const SweepRun& run_;
  std::vector<Case> cases_;
  std::vector<Row> rows_;  // parallel to cases_
  std::map<RowKey, std::size_t> index_;
  std::set<std::size_t> finished_;  // indices of the rows that the journal held
  std::string plan_hash_;
  std::vector<Connection> connections_;
  std::vector<Hello> hellos_;
  std::optional<Journal> journal_;
  Record record_;
  bool counters_warned_ = false;
};

}  // namespace

SweepResult run_sweep(const SweepRun& run) {
  return Runner(run).execute();
}

int exit_code_of(const SweepResult& result) {
  bool wrong = false;
  bool incomplete = false;
  bool ran = false;
  for (const Row& row : result.record.rows) {
    wrong = wrong || row.status == Status::wrong;
    incomplete = incomplete || is_incomplete(row);
    ran = ran || row.status == Status::ok;
  }
  if (wrong) return static_cast<int>(ExitCode::wrong);
  if (result.signal != 0) return 128 + result.signal;
  if (incomplete) return static_cast<int>(ExitCode::incomplete);
  return static_cast<int>(ran ? ExitCode::ok : ExitCode::nothing_ran);
}

}  // namespace rooflash
