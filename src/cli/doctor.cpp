// rooflash doctor: is this machine fit to measure?
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/devices.hpp"
#include "cli/flags.hpp"
#include "cli/host_checks.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "worker/driver/connection.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorFlags {
  std::vector<std::string> devices = {};
  std::string counters = "hbm";
  std::string timeout = "60s";
  bool json = false;
};

// Takes the findings in order: a line each as they come, or one document at the end.
class Findings {
 public:
  explicit Findings(bool json) : json_(json) {}

  // `device` is "" for the machine as a whole.
  void add(const std::string& device, const DoctorCheck& check) {
    const bool fine = check.status == CheckStatus::ok;
    if (check.status == CheckStatus::fail) failed_.push_back(check.id);
    if (json_) {
      checks_.push_back({{"device", device.empty() ? Json() : Json(device)},
                         {"id", check.id},
                         {"status", to_string(check.status)},
                         {"detail", check.detail},
                         {"fix", fine ? Json() : Json(check.fix)}});
      return;
    }
    constexpr std::size_t kLongest = 1000;
    const char* label = fine ? "OK" : check.status == CheckStatus::warn ? "WARN" : "FAIL";
    std::string text = fmt::format("{:<4}  {:<16} {}\n", label, printable(check.id),
                                   printable(check.detail, kLongest));
    if (!fine) text += fmt::format("      fix: {}\n", printable(check.fix, kLongest));
    print_result(text);
  }
  void add(const std::string& device, const std::vector<DoctorCheck>& checks) {
    for (const DoctorCheck& check : checks) add(device, check);
  }

  // Prints the verdict and gives the exit code.
  int end(bool no_gpu) const {
    const ExitCode code = no_gpu            ? ExitCode::no_gpu
                          : failed_.empty() ? ExitCode::ok
                                            : ExitCode::not_fit;
    if (json_) {
      const BuildInfo& build = build_info();
      print_result(Json{{"doctor", 1},
                        {"fit", code == ExitCode::ok},
                        {"exit_code", static_cast<int>(code)},
                        {"tool",
                         {{"version", build.version},
                          {"commit", build.commit},
                          {"dirty", build.dirty},
                          {"build", build.build}}},
                        {"checks", checks_}}
                       .dump(2, ' ', false, Json::error_handler_t::replace) +
                   "\n");
    } else if (code == ExitCode::ok) {
      print_result("fit to measure\n");
    } else {
      print_result(fmt::format("not fit to measure: {}\n", fmt::join(failed_, ", ")));
    }
    return static_cast<int>(code);
  }

 private:
  bool json_;
  Json checks_ = Json::array();
  std::vector<std::string> failed_;
};

// A worker that dies or hangs over a question is a finding too.
void ask_worker(Findings& findings, const std::string& device, const char* id, const char* fix,
                const std::function<std::vector<DoctorCheck>()>& question) {
  try {
    findings.add(device, question());
  } catch (const Error& error) {
    if (error.code() != ExitCode::incomplete) throw;
    findings.add(device, DoctorCheck{id, CheckStatus::fail, error.what(), fix});
  }
}

void check_device(Findings& findings, const std::string& device, const std::string& counters,
                  double timeout_s) {
  Connection connection(worker_path(), device);
  ask_worker(findings, device, "device",
             "look for Xid in dmesg; run `rooflash-worker --devices` by hand to see more",
             [&] { return connection.doctor(timeout_s); });
  if (counters == "none") return;
  ask_worker(findings, device, "counters",
             "update the driver and CUPTI; until then --counters none, or ROOFLASH_CUPTI=0",
             [&] { return connection.prove_counters(counters, timeout_s); });
}

int doctor(const DoctorFlags& flags) {
  const std::string counters =
      require_choice(flags.counters, "--counters", {"hbm", "none", "force"});
  const double timeout_s = parse_limit(flags.timeout, "--timeout");
  Findings findings(flags.json);
  bool worker = true;
  for (const DoctorCheck& check : host_checks()) {
    findings.add("", check);
    if (check.id == "worker") worker = check.status == CheckStatus::ok;
  }
  if (!worker) return findings.end(false);
  try {
    const DeviceChoice choice =
        choose_devices(flags.devices.empty() ? std::vector<std::string>{"0"} : flags.devices);
    for (const DeviceInfo& device : choice.devices) {
      check_device(findings, device.device, counters, timeout_s);
    }
  } catch (const Error& error) {
    const bool no_gpu = error.code() == ExitCode::no_gpu;
    if (!no_gpu && error.code() != ExitCode::incomplete) throw;
    findings.add("", DoctorCheck{"gpu", CheckStatus::fail, error.what(), error.hint()});
    return findings.end(no_gpu);
  }
  return findings.end(false);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("doctor", "is this machine fit to measure?");
  command->footer(
      "One line a check: OK, WARN (what is measured is right) or FAIL, with the fix. Exit code 8\n"
      "where a run would not be trustworthy, 77 where there is no GPU.");
  auto flags = std::make_shared<DoctorFlags>();
  add_repeatable(*command, "--device", flags->devices,
                 "all, 0,1, cuda:N, sim:GPU (default: the first GPU)");
  add_choice(
      *command, "--counters", flags->counters, {"hbm", "none", "force"},
      "default hbm; none: times alone are wanted; force: also where a profiler seems attached");
  command->add_option("--timeout", flags->timeout, "of each question to a worker (default 60s)");
  command->add_flag("--json", flags->json, "one JSON document (docs/formats.md)");
  command->callback([&context, flags] { context.action = [flags] { return doctor(*flags); }; });
}

}  // namespace rooflash
