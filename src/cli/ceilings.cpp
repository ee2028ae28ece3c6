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
  bool sustained = false;
  bool json = false;
};

std::string text_of(const Ceilings& ceilings, const DeviceInfo& device) {
  std::string text =
      fmt::format("{}  {}  ({})\n", ceilings.device, printable(device.name), ceilings.source);
  const auto line = [&](const std::string& name, OptDouble value, const char* unit,
                        const std::string& note = {}) {
    text += fmt::format("  {:<15} {}{}\n", name, value ? format_rate(*value, unit) : "not measured",
                        note.empty() ? note : "  " + note);
  };
  // Where there is a clock (or a power) of that name: "at 1,755 MHz".
  const auto at = [](const std::map<std::string, double>& values, const std::string& name,
                     const char* unit) {
    const auto found = values.find(name);
    return found == values.end() ? std::string() : "at " + format_rate(found->second, unit);
  };
  const std::map<std::string, double> none;
  const auto& clocks = ceilings.units ? ceilings.units->clock_mhz : none;
  line("HBM copy", ceilings.hbm_copy_gbps, "GB/s");
  line("HBM read", ceilings.hbm_read_gbps, "GB/s");
  line("HBM write", ceilings.hbm_write_gbps, "GB/s");
  for (const auto& [dtype, tflops] : ceilings.gemm_tflops) {
    line("GEMM " + dtype, tflops, "TFLOPS", at(clocks, "gemm." + dtype, "MHz"));
  }
  if (ceilings.units) {
    const UnitRoofs& units = *ceilings.units;
    line("L2 read", units.l2_read_gbps, "GB/s");
    line("smem read", units.smem_read_gbps, "GB/s");
    for (const auto& [type, tflops] : units.tensor_tflops) {
      line("tensor " + type, tflops, "TFLOPS", at(clocks, "tensor." + type, "MHz"));
    }
    for (const auto& [type, tflops] : units.mma_sync_tflops) {
      line("mma.sync " + type, tflops, "TFLOPS");
    }
    line("exponentials", units.exp_gops, "G/s");
    line("fp32 FMA", units.fp32_tflops, "TFLOPS");
  }
  if (ceilings.launch) {
    line("launch, events", ceilings.launch->event_us, "us");
    line("launch, stream", ceilings.launch->stream_us, "us");
    line("launch, graph", ceilings.launch->graph_us, "us");
    line("launch, host", ceilings.launch->host_us, "us");
  }
  if (!ceilings.sustained) return text;
  const SustainedRoofs& lasting = *ceilings.sustained;
  text += "  sustained:\n";
  const auto sustained = [&](const std::string& label, const std::string& name, OptDouble value,
                             const char* unit) {
    line(label, value, unit,
         at(lasting.clock_mhz, name, "MHz") + " " + at(lasting.power_w, name, "W"));
  };
  sustained("HBM copy", "hbm_copy", lasting.hbm_copy_gbps, "GB/s");
  for (const auto& [dtype, tflops] : lasting.gemm_tflops) {
    sustained("GEMM " + dtype, "gemm." + dtype, tflops, "TFLOPS");
  }
  for (const auto& [type, tflops] : lasting.tensor_tflops) {
    sustained("tensor " + type, "tensor." + type, tflops, "TFLOPS");
  }
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
    const Ceilings found = device_ceilings(connection, hello, flags.refresh, flags.sustained);
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
  CLI::App* command = app.add_subcommand(
      "ceilings", "the roofs of a device: memory, matrix products, units, launches");
  command->footer(
      "Measured once per GPU and driver, and kept in XDG_STATE_HOME/rooflash/ceilings.");
  auto flags = std::make_shared<CeilingsFlags>();
  add_repeatable(*command, "--device", flags->devices, "auto (default), all, 0,1, cuda:N, sim:GPU");
  command->add_flag("--refresh", flags->refresh, "measure again");
  command->add_flag("--sustained", flags->sustained,
                    "also under lasting load, at the clock it settles at (a minute)");
  command->add_flag("--json", flags->json, "JSON on stdout");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return ceilings(context, *flags); }; });
}

}  // namespace rooflash
