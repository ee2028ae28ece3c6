// rooflash list: what there is. Needs no GPU.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <set>

#include "cli/commands.hpp"
#include "cli/devices.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/build_info.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/gpu_spec.hpp"
#include "registry.hpp"
#include "sweep/suite.hpp"
#include "worker/driver/connection.hpp"

namespace rooflash {
namespace {

std::string sm_text(const Variant& variant) {
  return variant.sm_max >= 999 ? fmt::format("sm_{}+", variant.sm_min)
                               : fmt::format("sm_{}-{}", variant.sm_min, variant.sm_max);
}

// One line per set of variants that differ in dtype and head dim alone.
std::string variants_text(const Kernel& kernel) {
  struct Merged {
    std::string key;
    std::set<int> headdims;
    std::vector<std::string> dtypes;
  };
  std::vector<Merged> lines;
  for (const Variant& variant : kernel.variants) {
    const std::string key = fmt::format("{}  {}  {}", to_string(variant.pass),
                                        mask_names(variant.masks), sm_text(variant));
    if (lines.empty() || lines.back().key != key) lines.push_back({key, {}, {}});
    Merged& line = lines.back();
    line.headdims.insert(variant.headdim);
    const std::string dtype(to_string(variant.dtype));
    if (std::find(line.dtypes.begin(), line.dtypes.end(), dtype) == line.dtypes.end()) {
      line.dtypes.push_back(dtype);
    }
  }
  std::string text;
  for (const Merged& line : lines) {
    const bool several = line.headdims.size() > 1;
    text += fmt::format(
        "    {}  head dims up to {}{}  {}\n", fmt::join(line.dtypes, ","), *line.headdims.rbegin(),
        several ? fmt::format(" (compiled {})", fmt::join(line.headdims, ", ")) : "", line.key);
  }
  return text;
}

// The tiles that a family's choice comes to for one head dim and mask, with heads enough for every
// SM, each with the sequence length from which on it is taken.
using Runs = std::vector<std::pair<std::int64_t, std::string>>;

Runs runs_of(const Kernel& kernel, int headdim, MaskKind mask) {
  Problem p;
  p.dtype = kernel.variants.front().dtype;
  p.batch = 256;
  p.headdim = p.headdim_v = headdim;
  p.mask.kind = mask;
  Runs runs;
  for (std::int64_t seqlen = 512; seqlen <= 16384; seqlen *= 2) {
    p.seqlen_q = p.seqlen_kv = seqlen;
    const std::string tile = kernel.choice(p);
    if (runs.empty() || runs.back().second != tile) runs.emplace_back(seqlen, tile);
  }
  return runs;
}

// The one for a query of each head on many keys, as in decoding, where it is another than `usual`.
std::string decoding_text(const Kernel& kernel, int headdim, const std::string& usual) {
  Problem p;
  p.dtype = kernel.variants.front().dtype;
  p.heads_q = 32;
  p.heads_kv = 8;
  p.seqlen_q = 1;
  p.seqlen_kv = 16384;
  p.headdim = p.headdim_v = headdim;
  const std::string tile = kernel.choice(p);
  if (tile == usual) return "";
  return fmt::format("    {}: {}\n",
                     fmt::format("d{}, 1 query on {} keys, {} heads on {}", headdim,
                                 format_count(p.seqlen_kv), p.heads_q, p.heads_kv),
                     tile);
}

std::string choices_text(const Kernel& kernel) {
  std::set<int> headdims;
  for (const Variant& variant : kernel.variants) headdims.insert(variant.headdim);
  std::string text;
  const auto add = [&](const std::string& shape, const Runs& runs) {
    for (const auto& [from, tile] : runs) {
      const std::string length =
          runs.size() == 1 ? "" : fmt::format(", length from {}", format_count(from));
      text += fmt::format("    {:<14} {}\n", shape + length + ":", tile);
    }
  };
  for (const int headdim : headdims) {
    const Runs full = runs_of(kernel, headdim, MaskKind::none);
    const Runs causal = runs_of(kernel, headdim, MaskKind::causal);
    add(fmt::format("d{}{}", headdim, full == causal ? "" : " full"), full);
    if (full != causal) add(fmt::format("d{} causal", headdim), causal);
    text += decoding_text(kernel, headdim, full.back().second);
  }
  return text;
}

void list_kernels(bool hidden, bool variants) {
  std::string text;
  for (const Kernel* kernel : kernels()) {
    if (kernel->hidden && !hidden) continue;
    const std::string from = kernel->provider == "builtin"
                                 ? fmt::format("{} compiled variants", kernel->variants.size())
                                 : fmt::format("provider {}, on real GPUs alone", kernel->provider);
    text += fmt::format("{:<12} {}\n    {}; {}\n{}", kernel->name, kernel->summary, from,
                        kernel->source, variants_text(*kernel));
    if (!kernel->options.empty()) {
      text += fmt::format("    options {}\n", fmt::join(kernel->options, ", "));
    }
    if (variants && kernel->choice != nullptr) text += choices_text(*kernel);
  }
  text += fmt::format("compiled: {}\n", build_info().build);
  print_result(text);
}

void list_suites() {
  std::string text;
  for (const std::string& name : suite_names()) {
    const Suite suite = load_suite(name);
    const PlanDevice any;
    const std::size_t cases = make_plan(suite.grids, {}, {&any, 1}, 1, 1, Order::grid).size();
    text += fmt::format("{:<12} {:>4} cases  {}\n", name, cases, suite.summary);
  }
  print_result(text);
}

void list_devices() {
  std::string text;
  try {
    for (const DeviceInfo& device : list_cuda_devices(worker_path())) {
      text += fmt::format("{:<18} {}\n", device.device, printable(device.name));
    }
  } catch (const Error& error) {
    if (error.code() == ExitCode::interrupted) throw;
    text += fmt::format("{:<18} {}\n", "cuda", error.what());
  }
  for (const GpuSpec& spec : gpu_specs()) {
    text += fmt::format("{:<18} {}, simulated{}\n", "sim:" + spec.key, spec.names.front(),
                        spec.validated ? "" : " (model not validated against a real card)");
  }
  print_result(text);
}

std::string figure(std::optional<double> value) {
  return value ? fmt::format("{:.0f}", *value) : "-";
}

void list_gpus() {
  std::string text =
      fmt::format("{:<12} {:<28} {:>5} {:>8} {:>7} {:>8} {:>9} {:>9} {:>11}\n", "gpu", "name",
                  "SMs", "memory", "L2", "HBM", "bf16", "e4m3", "balance");
  text += fmt::format("{:<12} {:<28} {:>5} {:>8} {:>7} {:>8} {:>9} {:>9} {:>11}\n", "", "", "",
                      "GiB", "MiB", "GB/s", "TFLOPS", "TFLOPS", "FLOP/byte");
  for (const GpuSpec& spec : gpu_specs()) {
    const DType half = peak_tflops(spec, DType::bf16) ? DType::bf16 : DType::fp16;
    text += fmt::format(
        "{:<12} {:<28} {:>5} {:>8.0f} {:>7.1f} {:>8.0f} {:>9} {:>9} {:>11}\n", spec.key,
        spec.names.front(), spec.sm_count, static_cast<double>(spec.memory_bytes) / (1 << 30),
        static_cast<double>(spec.l2_bytes) / (1 << 20), spec.hbm_gbps,
        figure(peak_tflops(spec, DType::bf16)), figure(peak_tflops(spec, DType::e4m3)),
        fmt::format("{}{}", figure(balance_point(spec, half)),
                    half == DType::bf16 ? "" : " (fp16)"));
  }
  text +=
      "\nDense datasheet peaks. balance: FLOP per HBM byte above which the tensor cores are the "
      "roof\n"
      "(bf16). Attention that writes its scores stays far below it: memory is its "
      "roof.\n\nSources\n";
  for (const GpuSpec& spec : gpu_specs())
    text += fmt::format("  {:<12} {}\n", spec.key, spec.source);
  print_result(text);
}

void list_cases(const SweepFlags& flags) {
  const Sweep sweep = resolve_sweep(flags);
  if (sweep.devices.empty()) {
    print_plan(sweep, {{"any", 0}});
  } else {
    print_plan(sweep, plan_devices(choose_devices(sweep.devices).devices));
  }
}

}  // namespace

void add_list(CLI::App& app, Context& context) {
  CLI::App* command =
      app.add_subcommand("list", "kernels, suites, devices, gpus, cases or metrics");
  command->require_subcommand(1);
  const auto topic = [&](const char* name, const char* help, auto action) {
    CLI::App* sub = command->add_subcommand(name, help);
    sub->callback([&context, action] {
      context.action = [action] {
        action();
        return 0;
      };
    });
    return sub;
  };
  auto hidden = std::make_shared<bool>(false);
  auto variants = std::make_shared<bool>(false);
  CLI::App* families = topic("kernels", "families, what they support and where they come from",
                             [hidden, variants] { list_kernels(*hidden, *variants); });
  families->add_flag("--hidden", *hidden, "the families of the test suite too");
  families->add_flag("--variants", *variants,
                     "which tile a shape takes and why, of families that have several");
  topic("suites", "built-in suites", list_suites);
  topic("devices", "real and simulated devices", list_devices);
  topic("gpus", "known cards, their peaks and balance points", list_gpus);
  auto flags = std::make_shared<SweepFlags>();
  add_sweep_flags(*topic("cases", "the cases that run would run", [flags] { list_cases(*flags); }),
                  *flags);
  add_list_metrics(*command, context);
}

}  // namespace rooflash
