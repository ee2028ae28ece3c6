// rooflash ceilings: the roofs of a device.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/devices.hpp"
#include "cli/flags.hpp"
#include "cli/roofs_cache.hpp"
#include "cli/terminal.hpp"
#include "core/units.hpp"
#include "record/json.hpp"

namespace rooflash {
namespace {

struct CeilingsFlags {
  std::vector<std::string> devices = {};
  bool refresh = false;
  bool json = false;
};

std::string text_of(const Ceilings& ceilings, const DeviceInfo& device) {
  std::string text =
      fmt::format("{}  {}  ({})\n", ceilings.device, printable(device.name), ceilings.source);
  const auto line = [&](const std::string& name, OptDouble value, const char* unit) {
    text += fmt::format("  {:<10} {}\n", name, value ? format_rate(*value, unit) : "not measured");
  };
  line("HBM copy", ceilings.hbm_copy_gbps, "GB/s");
  line("HBM read", ceilings.hbm_read_gbps, "GB/s");
  line("HBM write", ceilings.hbm_write_gbps, "GB/s");
  for (const auto& [dtype, tflops] : ceilings.gemm_tflops) line("GEMM " + dtype, tflops, "TFLOPS");
  return text;
}

int ceilings(const Context& context, const CeilingsFlags& flags) {
  const DeviceChoice choice =
      choose_devices(flags.devices.empty() ? std::vector<std::string>{"auto"} : flags.devices);
  if (!context.quiet && !choice.note.empty()) print_message(choice.note);
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const DeviceInfo& device : choice.devices) {
    Connection connection(worker_path(), device.device);
    const Hello hello = connection.start();
    const Ceilings found = device_ceilings(connection, hello, flags.refresh);
    if (flags.json) {
      all.push_back(to_json(found));
    } else {
      print_result(text_of(found, hello.device));
    }
  }
  if (flags.json) print_result(all.dump(2) + "\n");
  return 0;
}

}  // namespace

void add_ceilings(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("ceilings", "the memory and matrix roofs of a device");
  command->footer(
      "Measured once per GPU and driver, and kept in XDG_STATE_HOME/rooflash/ceilings.");
  auto flags = std::make_shared<CeilingsFlags>();
  add_repeatable(*command, "--device", flags->devices, "auto (default), all, 0,1, cuda:N, sim:GPU");
  command->add_flag("--refresh", flags->refresh, "measure again");
  command->add_flag("--json", flags->json, "JSON on stdout");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return ceilings(context, *flags); }; });
}

}  // namespace rooflash
