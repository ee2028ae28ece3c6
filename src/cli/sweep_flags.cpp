#include "cli/sweep_flags.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <utility>

#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "sweep/suite.hpp"

namespace rooflash {
namespace {

constexpr std::int64_t kMaxRounds = 1000;

// Axis, what it says in the help. Every axis but pass, device and option, which have flags of their
// own or none.
constexpr std::pair<const char*, const char*> kAxisHelp[] = {
    {"kernel",
     "fa2,naive; ^naive leaves one out; all (default: every one that supports the shape)"},
    {"dtype", "fp32, fp16, bf16, e4m3 (default bf16)"},
    {"headdim", "64,128 or 192-128 for Q/K and V (default 128)"},
    {"headdim-v", "head dim of V and O, where it differs"},
    {"seqlen", "keys, and queries too: 512,1k,8k or 512:16k:x2 or 1k:8k:1k (default 512:16k:x2)"},
    {"seqlen-q", "queries, where they are not as many as the keys"},
    {"batch-size", "default: total-tokens / seqlen"},
    {"total-tokens", "default 16k"},
    {"nheads", "query heads (default: hidden-size / headdim)"},
    {"hidden-size", "default 2k"},
    {"nheads-kv", "key and value heads (default: nheads / gqa-ratio)"},
    {"gqa-ratio", "query heads per key head (default 1)"},
    {"causal", "true, false or both (default both)"},
    {"align", "bottom-right (default) or top-left: the corner a mask is anchored to"},
    {"window", "LEFT,RIGHT keys visible beside the query's own, inclusive; inf for no limit"},
    {"distribution", "normal, outlier, large, negative, constant, biased, peaky (default normal)"},
};

Filter join_filters(const std::vector<std::string>& filters) {
  if (filters.empty()) return {};
  if (filters.size() == 1) return Filter::parse(filters.front());
  std::string all;
  for (const std::string& filter : filters) all += "(" + filter + ") ";
  return Filter::parse(all);
}

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

}  // namespace

void add_sweep_flags(CLI::App& app, SweepFlags& flags) {
  const char* const kGroup = "Which cases";
  app.add_option("--suite", flags.suite, "a built-in suite (`rooflash list suites`) or a file")
      ->group(kGroup);
  for (const auto& [name, help] : kAxisHelp) {
    const auto set = [&flags, axis = std::string(name)](const std::string& text) {
      flags.axes[axis] = text;
    };
    app.add_option_function<std::string>(std::string("--") + name, set, help)->group(kGroup);
  }
  app.add_flag("--fwd", flags.fwd, "the forward pass (the default)")->group(kGroup);
  app.add_option("-f,--filter", flags.filters,
                 "keep what matches: 'kernel:fa2 seqlen:>=4k -causal:true' (repeatable)")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kGroup);
  app.add_option("--device", flags.devices,
                 "auto (default), all, 0,1, cuda:N, sim:GPU; several run side by side")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(kGroup);
  app.add_option("--order", flags.order, "shuffle (default) or grid")->group(kGroup);
  app.add_option("--seed", flags.seed, "of the order and the inputs (default 1)")->group(kGroup);
  app.add_option("--rounds", flags.rounds, "repeats the sweep in fresh workers (default 1)")
      ->group(kGroup);
}

std::vector<Case> Sweep::plan(const std::vector<PlanDevice>& on) const {
  return make_plan(grids, filter, on, rounds, seed, order);
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
  for (Axes& grid : sweep.grids) {
    for (const auto& [name, text] : flags.axes) set_axis(grid, name, text, "--" + name);
    if (flags.fwd) grid.passes = {Pass::fwd};
  }
  sweep.devices = flags.devices.empty() ? devices_of(sweep.grids) : flags.devices;
  sweep.filter = join_filters(flags.filters);
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
  if (text.empty()) {
    throw Error(ExitCode::nothing_ran, "no case is selected",
                "Loosen the filter, or name the kernel to see why it does not support the shape.");
  }
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
