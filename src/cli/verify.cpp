// rooflash verify: are the results right? Small shapes, no timing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/sweep_run.hpp"
#include "cli/terminal.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

struct VerifyFlags {
  SweepFlags sweep;
  std::string timeout = "60s";
};

// Odd lengths, so that tile edges are met; small enough for a check of every row.
Axes small_shapes() {
  Axes axes;
  axes.dtypes = {DType::bf16, DType::fp16};
  axes.headdims = {{64, 64}, {128, 128}};
  axes.seqlens_kv = {128, 257, 512};
  axes.batches = {1};
  axes.nheads = {2};
  return axes;
}

std::string number(OptDouble value) {
  return value ? fmt::format("{:.2e}", *value) : "-";
}

std::string error_table(const Record& record) {
  std::size_t width = 4;
  for (const Row& row : record.rows) width = std::max(width, row.case_id.size());
  std::string text = fmt::format("{:<{}}  {:<11}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", "case", width,
                                 "status", "max err", "allowed", "rms err", "allowed", "rows");
  for (const Row& row : record.rows) {
    const VerifyResult& verify = row.verify;
    text += fmt::format(
        "{:<{}}  {:<11}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n", row.case_id, width,
        to_string(row.status), number(verify.max_abs_err), number(verify.tolerance_max),
        number(verify.rms_err), number(verify.tolerance_rms),
        row.status == Status::ok ? printable(verify.rows_checked) : printable(row.reason));
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
  run.timeout_s = parse_seconds(flags.timeout, "--timeout");
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
  add_sweep_flags(*command, flags->sweep);
  command->add_option("--timeout", flags->timeout, "of one case (default 60s)");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return verify(context, *flags); }; });
}

}  // namespace rooflash
