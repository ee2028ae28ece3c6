// rooflash verify: are the results right? Small shapes, no timing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/sweep_run.hpp"
#include "cli/terminal.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

struct VerifyFlags {
  SweepFlags sweep;
  std::string timeout = "60s";
};

// Odd lengths, so that tile edges are met; small, so that all of it takes seconds.
Axes small_shapes() {
  Axes axes;
  axes.dtypes = {DType::bf16, DType::fp16};
  axes.headdims = {{64, 64}, {128, 128}};
  axes.seqlens_kv = {128, 257, 512};
  axes.batches = {1};
  axes.nheads = {2};
  return axes;
}

// What the help says of the axes above.
std::map<std::string, std::string> verify_defaults() {
  return {{"dtype", "bf16,fp16"}, {"headdim", "64,128"}, {"seqlen", "128,257,512"},
          {"batch-size", "1"},    {"nheads", "2"},       {"total-tokens", ""},
          {"hidden-size", ""}};
}

std::string number(OptDouble value) {
  return value ? fmt::format("{:.2e}", *value) : "-";
}

// What was compared, or why nothing was: "at b1.h1.kv1/q257.k257/d128/full, 192 of 257: ...".
std::string details(const Row& row) {
  if (row.status != Status::ok) return printable(row.reason);
  const VerifyResult& verify = row.verify;
  if (verify.status != "reduced") return printable(verify.rows_checked);
  return "at " + printable(verify.shape) + ", " + printable(verify.rows_checked);
}

std::string status_text(const Row& row) {
  const bool reduced = row.status == Status::ok && row.verify.status == "reduced";
  return reduced ? "reduced" : std::string(to_string(row.status));
}

std::string error_table(const Record& record) {
  const bool several = record.environment.devices.size() > 1;
  const auto name = [&](const Row& row) {
    return several ? row.case_id + "  " + row.device : row.case_id;
  };
  std::size_t width = 4;
  for (const Row& row : record.rows) width = std::max(width, name(row).size());
  std::string text;
  for (const DeviceInfo& device : record.environment.devices) {
    if (!device.simulated) continue;
    text += fmt::format(
        "SIMULATED: {} is a model. The kernels' host algorithms were checked, on no "
        "GPU.\n",
        device.device);
  }
  text += fmt::format("{:<{}}  {:<11}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n",
                      several ? "case, device" : "case", width, "status", "max err", "allowed",
                      "rms err", "allowed", "rows");
  for (const Row& row : record.rows) {
    const VerifyResult& verify = row.verify;
    text += fmt::format("{:<{}}  {:<11}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", name(row), width,
                        status_text(row), number(verify.max_abs_err), number(verify.tolerance_max),
                        number(verify.rms_err), number(verify.tolerance_rms), details(row));
  }
  return text;
}

int verify(const Context& context, const VerifyFlags& flags) {
  SweepRun run;
  run.argv = context.argv;
  run.sweep = resolve_sweep(flags.sweep, small_shapes());
  const DeviceChoice choice = choose_devices(
      run.sweep.devices.empty() ? std::vector<std::string>{"auto"} : run.sweep.devices);
  run.devices = choice.devices;
  run.options.verify = "only";
  run.options.counters = "none";
  run.timeout_s = parse_limit(flags.timeout, "--timeout");
  run.ceilings = false;
  run.quiet = context.quiet;
  if (!context.quiet) announce(choice);
  const SweepResult result = run_sweep(run);
  print_result(error_table(result.record));
  return exit_code_of(result);
}

}  // namespace

void add_verify(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("verify", "check results on small shapes, without timing");
  auto flags = std::make_shared<VerifyFlags>();
  add_sweep_flags(*command, flags->sweep, verify_defaults());
  command->add_option("--timeout", flags->timeout, "of one case (default 60s)");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return verify(context, *flags); }; });
}

}  // namespace rooflash
