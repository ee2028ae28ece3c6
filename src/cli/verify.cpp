// rooflash verify: are the results right? Small shapes, no timing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

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

constexpr const char* kSuite = "verify";  // what runs where no shape is asked for
// Longer tables are summed up by kernel.
constexpr std::size_t kMostRows = 100;

// Whether a flag asks for shapes, or for inputs.
bool asks_for_shapes(const SweepFlags& flags) {
  return std::any_of(flags.axes.begin(), flags.axes.end(), [](const auto& axis) {
    return axis.first != "kernel" && axis.first != "dtype";
  });
}

// What else a shape is checked with. Odd lengths, so that tile edges are met; small, so that all of
// it takes seconds.
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

// The larger of the errors in units of what is allowed; 0 where nothing was compared.
double share_of_tolerance(const VerifyResult& verify) {
  const auto share = [](OptDouble error, OptDouble allowed) {
    return error && allowed && *allowed > 0 ? *error / *allowed : 0.0;
  };
  return std::max(share(verify.max_abs_err, verify.tolerance_max),
                  share(verify.rms_err, verify.tolerance_rms));
}

// A line a kernel: how many cases came out how, and how close one came to what is allowed.
std::string summary_table(const Record& record) {
  struct Sum {
    std::int64_t right = 0, reduced = 0, unsupported = 0, other = 0;
    double share = 0;
    std::string closest;
  };
  std::map<std::string, Sum> sums;
  for (const Row& row : record.rows) {
    Sum& sum = sums[row.kernel];
    if (row.status != Status::ok) {
      ++(row.status == Status::unsupported ? sum.unsupported : sum.other);
      continue;
    }
    ++(row.verify.status == "reduced" ? sum.reduced : sum.right);
    if (const double share = share_of_tolerance(row.verify); share > sum.share) {
      sum.share = share;
      sum.closest = row.case_id;
    }
  }
  std::string text = fmt::format("{:<12} {:>6} {:>8} {:>10} {:>12} {:>12}  {}\n", "kernel", "right",
                                 "reduced", "not right", "unsupported", "of allowed", "in");
  for (const auto& [kernel, sum] : sums) {
    const bool compared = !sum.closest.empty();
    text += fmt::format("{:<12} {:>6} {:>8} {:>10} {:>12} {:>12}  {}\n", printable(kernel),
                        sum.right, sum.reduced, sum.other, sum.unsupported,
                        compared ? fmt::format("{:.0f} %", 100 * sum.share) : "-",
                        compared ? printable(sum.closest) : "-");
  }
  return text;
}

std::string error_table(const Record& record) {
  const bool summed = record.rows.size() > kMostRows;
  std::vector<const Row*> rows;
  for (const Row& row : record.rows) {
    const bool right = row.status == Status::ok || row.status == Status::unsupported;
    if (!summed || !right) rows.push_back(&row);
  }
  const bool several = record.environment.devices.size() > 1;
  const auto name = [&](const Row& row) {
    return several ? row.case_id + "  " + row.device : row.case_id;
  };
  std::size_t width = 4;
  for (const Row* row : rows) width = std::max(width, name(*row).size());
  std::string text;
  for (const DeviceInfo& device : record.environment.devices) {
    if (!device.simulated) continue;
    text += fmt::format(
        "SIMULATED: {} is a model. The kernels' host algorithms were checked, on no "
        "GPU.\n",
        device.device);
  }
  if (summed) text += summary_table(record);
  if (rows.empty()) return text;
  if (summed) text += "\nNot right:\n";
  text += fmt::format("{:<{}}  {:<11}  {:>9}  {:>9}  {:>9}  {:>9}  {}\n",
                      several ? "case, device" : "case", width, "status", "max err", "allowed",
                      "rms err", "allowed", "rows");
  for (const Row* one : rows) {
    const Row& row = *one;
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
  SweepFlags sweep = flags.sweep;
  if (sweep.suite.empty() && !asks_for_shapes(sweep)) sweep.suite = kSuite;
  run.sweep = resolve_sweep(sweep, small_shapes());
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
  CLI::App* command = app.add_subcommand(
      "verify",
      "check results on small shapes, without timing; all of suite verify where no shape is given");
  auto flags = std::make_shared<VerifyFlags>();
  add_sweep_flags(*command, flags->sweep, verify_defaults());
  command->add_option("--timeout", flags->timeout, "of one case (default 60s)");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return verify(context, *flags); }; });
}

}  // namespace rooflash
