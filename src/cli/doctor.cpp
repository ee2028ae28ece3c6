// rooflash doctor: is this machine fit to measure?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/devices.hpp"
#include "cli/flags.hpp"
#include "cli/terminal.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "worker/driver/connection.hpp"

namespace rooflash {
namespace {

constexpr double kTimeoutSeconds = 120;

void print_check(const DoctorCheck& check) {
  print_result(fmt::format("{:<4}  {:<22} {}\n", check.ok ? "OK" : "WARN", printable(check.name),
                           printable(check.detail)));
  if (!check.ok && !check.fix.empty()) {
    print_result(fmt::format("      fix: {}\n", printable(check.fix, 500)));
  }
}

int doctor(const std::vector<std::string>& device_flags) {
  const BuildInfo& build = build_info();
  const std::string worker = worker_path();
  print_check(
      {"build", true, fmt::format("{} {}, {}", build.version, build.commit, build.build), ""});
  bool fit = true;
  const bool named = !device_flags.empty();
  const DeviceChoice choice =
      choose_devices(named ? device_flags : std::vector<std::string>{"auto"});
  for (const DeviceInfo& device : choice.devices) {
    if (device.simulated && !named) {
      print_check(
          {"gpu", false, choice.note, "run on a machine with an NVIDIA GPU and its driver"});
      fit = false;
      continue;
    }
    print_check({"device", true, fmt::format("{} ({})", device.device, device.name), ""});
    for (const DoctorCheck& check : Connection(worker, device.device).doctor(kTimeoutSeconds)) {
      print_check(check);
      fit = fit && check.ok;
    }
  }
  return static_cast<int>(fit ? ExitCode::ok : ExitCode::not_fit);
}

}  // namespace

void add_doctor(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("doctor", "is this machine fit to measure?");
  command->footer("One line a check, OK or WARN with the fix. Exit code 8 where one is WARN.");
  auto devices = std::make_shared<std::vector<std::string>>();
  add_repeatable(*command, "--device", *devices, "auto (default), all, 0,1, cuda:N, sim:GPU");
  command->callback(
      [&context, devices] { context.action = [devices] { return doctor(*devices); }; });
}

}  // namespace rooflash
