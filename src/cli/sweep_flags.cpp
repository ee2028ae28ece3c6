#include "cli/sweep_flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "sweep/suite.hpp"

namespace rooflash {
namespace {

constexpr std::int64_t kMaxRounds = 1000;

// Every axis but pass and device, which have flags of their own.
struct AxisHelp {
  const char* name;
  const char* text;
  const char* standard;  // default; "" where the text says what there is to say
};
constexpr AxisHelp kAxisHelp[] = {
    {"kernel", "fa2,naive; ^naive leaves one out; all (default: every one that supports the shape)",
     ""},
    {"dtype", "fp32, fp16, bf16, e4m3", "bf16"},
    {"headdim", "64,128 or 192-128 for Q/K and V", "128"},
    {"headdim-v", "head dim of V and O, where it differs", ""},
    {"seqlen", "keys, and queries too: 512,1k,8k or 512:16k:x2 or 1k:8k:1k", "512:16k:x2"},
    {"seqlen-q", "queries, where they are not as many as the keys", ""},
    {"batch-size", "sequences", "total-tokens / seqlen"},
    {"total-tokens", "sets batch-size to total-tokens / seqlen", "16k"},
    {"nheads", "query heads", "hidden-size / headdim"},
    {"hidden-size", "sets nheads to hidden-size / headdim", "2k"},
    {"nheads-kv", "key and value heads", "nheads / gqa-ratio"},
    {"gqa-ratio", "query heads per key head", "1"},
    {"causal", "true, false or both", "both"},
    {"align", "bottom-right or top-left: the corner a mask is anchored to", "bottom-right"},
    {"window", "LEFT,RIGHT keys visible beside the query's own, inclusive; inf for no limit", ""},
    {"distribution", "normal, outlier, large, negative, constant, biased, biased-0.3, peaky",
     "normal"},
    {"fp8-scale", "of e4m3, what shares a scale: block (64 queries, 192 keys), head, tensor",
     "block"},
    {"fp8-hadamard", "of e4m3, Q and K times a random orthogonal matrix: on, off", "off"},
    {"fp8-accum", "of e4m3, sums: exact (in fp32), fast (by the tensor cores alone)", "exact"},
    {"fp8-max", "of e4m3, what weights are taken against: lazy (a kept reference), true (maximum)",
     "lazy"},
    {"fp8-smooth", "of e4m3, V's mean is taken out and added to O: on, off", "off"},
    {"fp8-out", "of e4m3, the type of O: bf16, fp16, e4m3", "bf16"},
    {"option", "NAME=VALUE,... for kernels that have such an option", ""},
};

// Devices that the grids of a suite name, each once.
std::vector<std::string> devices_of(const std::vector<Axes>& grids) {
  std::vector<std::string> devices;
  for (const Axes& grid : grids) {
    for (const std::string& device : grid.devices) {
      if (std::find(devices.begin(), devices.end(), device) == devices.end()) {
        devices.push_back(device);
      }
    }
  }
  return devices;
}

// Says why a sweep has no case: what each kernel that was not named refuses, or the filter.
[[noreturn]] void fail_empty(const Sweep& sweep, const std::vector<PlanDevice>& on) {
  std::vector<Axes> grids = sweep.grids;
  for (Axes& grid : grids) {
    const Selection selection = select_kernels(grid.kernels);
    grid.kernels.clear();
    for (const Kernel* kernel : selection.kernels) grid.kernels.emplace_back(kernel->name);
  }
  std::map<std::string, std::string> reasons;  // by kernel, of the first shape
  for (const Case& one : make_plan(grids, sweep.filter, on, 1, sweep.seed, Order::grid)) {
    reasons.emplace(one.kernel, one.unsupported_reason);
  }
  if (reasons.empty()) {
    throw Error(ExitCode::nothing_ran, "no case is selected: --filter leaves none",
                "loosen it; `rooflash list cases` without it shows what there is");
  }
  std::vector<std::string> texts;
  for (const auto& [kernel, reason] : reasons) texts.push_back(reason);
  throw Error(ExitCode::nothing_ran, "no case is selected: no kernel takes this shape",
              fmt::format("{}", fmt::join(texts, "; ")));
}

void refuse_options_given_twice(const std::map<std::string, std::string>& axes) {
  const auto option = axes.find("option");
  if (option == axes.end()) return;
  Axes by_name;
  set_axis(by_name, "option", option->second, "--option");
  for (const auto& [name, values] : by_name.options) {
    if (axes.contains("fp8-" + name)) {
      throw UsageError(fmt::format("--option {} and --fp8-{} set the same", name, name),
                       "leave one of them out");
    }
  }
}

}  // namespace

void add_sweep_flags(CLI::App& app, SweepFlags& flags,
                     const std::map<std::string, std::string>& defaults, bool rounds) {
  const char* const kGroup = "Which cases";
  app.add_option("--suite", flags.suite, "a built-in suite (`rooflash list suites`) or a file")
      ->group(kGroup);
  for (const auto& [name, text, usual] : kAxisHelp) {
    const auto own = defaults.find(name);
    const std::string standard = own != defaults.end() ? own->second : usual;
    const std::string help =
        standard.empty() ? text : fmt::format("{} (default {})", text, standard);
    const auto set = [&flags, axis = std::string(name)](const std::string& value) {
      flags.axes[axis] = value;
    };
    app.add_option_function<std::string>(std::string("--") + name, set, help)->group(kGroup);
  }
  app.add_flag("--fwd", flags.fwd, "the forward pass (the default)")->group(kGroup);
  app.add_flag("--bwd", flags.bwd, "the backward pass; with --fwd both")->group(kGroup);
  add_repeatable(app, "-f,--filter", flags.filters,
                 "keep what matches: 'kernel:fa2 seqlen:>=4k -causal:true' (repeatable)")
      ->group(kGroup);
  add_repeatable(app, "--device", flags.devices,
                 "auto (default), all, 0,1, cuda:N, sim:GPU; several run side by side")
      ->group(kGroup);
  add_choice(app, "--order", flags.order, {"shuffle", "grid"}, "default shuffle")->group(kGroup);
  app.add_option("--seed", flags.seed, "of the order and the inputs (default 1)")->group(kGroup);
  if (!rounds) return;
  app.add_option("--rounds", flags.rounds, "repeats the sweep in fresh workers (default 1)")
      ->group(kGroup);
}

std::vector<Case> Sweep::plan(const std::vector<PlanDevice>& on) const {
  std::vector<Case> cases = make_plan(grids, filter, on, rounds, seed, order);
  if (cases.empty()) fail_empty(*this, on);
  return cases;
}

Sweep resolve_sweep(const SweepFlags& flags, const Axes& defaults) {
  Sweep sweep;
  if (flags.suite.empty()) {
    sweep.suite = "flags";
    sweep.grids = {defaults};
  } else {
    Suite suite = load_suite(flags.suite);
    sweep.suite = suite.name;
    sweep.grids = std::move(suite.grids);
  }
  // The suite as it stands: flags may leave nothing of what its options are for.
  for (const Axes& grid : sweep.grids) check_options(grid, sweep.grids);
  refuse_options_given_twice(flags.axes);
  Axes asked;
  for (const auto& [name, text] : flags.axes) set_axis(asked, name, text, "--" + name);
  for (Axes& grid : sweep.grids) {
    for (const auto& [name, text] : flags.axes) set_axis(grid, name, text, "--" + name);
    if (flags.fwd || flags.bwd) grid.passes.clear();
    if (flags.fwd) grid.passes.push_back(Pass::fwd);
    if (flags.bwd) grid.passes.push_back(Pass::bwd);
  }
  check_options(asked, sweep.grids);
  sweep.devices = flags.devices.empty() ? devices_of(sweep.grids) : flags.devices;
  sweep.filter = Filter::all_of(flags.filters);
  sweep.seed = parse_seed(flags.seed, "--seed");
  require_choice(flags.order, "--order", {"shuffle", "grid"});
  sweep.order = flags.order == "grid" ? Order::grid : Order::shuffle;
  const std::int64_t rounds = parse_count(flags.rounds, "--rounds");
  if (rounds > kMaxRounds) {
    throw UsageError(fmt::format("--rounds: {} is above {}", rounds, kMaxRounds));
  }
  sweep.rounds = static_cast<int>(rounds);
  return sweep;
}

std::vector<PlanDevice> plan_devices(const std::vector<DeviceInfo>& devices) {
  std::vector<PlanDevice> on;
  on.reserve(devices.size());
  for (const DeviceInfo& device : devices) {
    on.push_back({device.device, static_cast<int>(device.compute_capability.value_or(0))});
  }
  return on;
}

void print_plan(const Sweep& sweep, const std::vector<PlanDevice>& on) {
  std::string text;
  for (const Case& one : sweep.plan(on)) {
    text += case_id(one.kernel, one.problem) + "  " + one.device;
    if (sweep.rounds > 1) text += fmt::format("  round {}", one.round);
    if (!one.unsupported_reason.empty()) text += "  unsupported: " + one.unsupported_reason;
    text += '\n';
  }
  print_result(text);
}

std::uint64_t parse_seed(std::string_view text, std::string_view flag) {
  std::uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) {
    throw UsageError(
        fmt::format("{}: '{}' is not a whole number from 0 to 2^64 - 1", flag, printable(text)));
  }
  return value;
}

const std::string& require_choice(const std::string& text, std::string_view flag,
                                  const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
    const std::string hint = suggest(text, choices);
    throw UsageError(
        fmt::format("{}: '{}' is not one of {}", flag, printable(text), fmt::join(choices, ", ")),
        hint.starts_with("did you mean") ? hint : "");
  }
  return text;
}

}  // namespace rooflash
