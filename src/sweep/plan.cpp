#include "sweep/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/error.hpp"
#include "core/fp8.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "registry.hpp"
#include "sweep/list_grammar.hpp"

namespace rooflash {
namespace {

// SplitMix64. Written out, because the standard library's shuffle differs between platforms and a
// recorded seed must give the same order everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  template <class Value>
  void shuffle(std::vector<Value>& values) {
    for (std::size_t left = values.size(); left > 1; --left) {
      std::swap(values[left - 1], values[below(left)]);
    }
  }

 private:
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  // Modulo bias is below 1e-13 for any plan that fits in memory.
  std::size_t below(std::size_t bound) { return static_cast<std::size_t>(next() % bound); }

  std::uint64_t state_;
};

// One problem and the families that are asked to run it, with whether silence is allowed for those
// that cannot.
struct Entry {
  Problem problem;
  std::vector<std::pair<const Kernel*, bool>> kernels;  // family, named
};

// The problems of all grids, each once; a problem of several grids gets the kernels of all of them.
std::vector<Entry> entries(std::span<const Axes> grids) {
  std::vector<Entry> result;
  std::map<std::string, std::size_t> index;
  for (const Axes& axes : grids) {
    const Selection selection = select_kernels(axes.kernels);
    for (Problem& problem : expand(axes)) {
      const auto [at, is_new] = index.emplace(case_id("", problem), result.size());
      if (is_new) result.push_back({std::move(problem), {}});
      auto& kernels = result[at->second].kernels;
      for (const Kernel* kernel : selection.kernels) {
        const auto known = std::find_if(kernels.begin(), kernels.end(),
                                        [&](const auto& entry) { return entry.first == kernel; });
        if (known == kernels.end()) {
          kernels.emplace_back(kernel, selection.named);
        } else {
          known->second = known->second || selection.named;
        }
      }
    }
  }
  return result;
}

// Why `device` cannot run `problem` on `kernel`; "" where it can.
std::string refusal(const Kernel& kernel, const Problem& problem, const PlanDevice& device) {
  std::string reason;
  if (find_variant(kernel, problem, device.sm, &reason) == nullptr) return reason;
  return device.name.starts_with("sim:") ? no_model(kernel) : "";
}

// "fp8 has scale, hadamard, accum", of all kernels.
std::string options_that_exist() {
  std::string text;
  for (const Kernel* kernel : kernels()) {
    if (kernel->options.empty()) continue;
    text += fmt::format("{}{} has {}", text.empty() ? "" : "; ", kernel->name,
                        fmt::join(kernel->options, ", "));
  }
  return text;
}

}  // namespace

Selection select_kernels(const std::vector<std::string>& elements) {
  std::vector<std::string> known;
  for (const Kernel* kernel : kernels()) {
    const std::string name(kernel->name);
    const bool asked = std::find(elements.begin(), elements.end(), name) != elements.end();
    if (!kernel->hidden || asked) known.push_back(name);
  }
  Selection selection;
  for (const std::string& name : select_names(elements, known, "--kernel")) {
    selection.kernels.push_back(find_kernel(name));
  }
  selection.named = std::any_of(elements.begin(), elements.end(), [](const std::string& element) {
    return element != "all" && !element.starts_with('^');
  });
  return selection;
}

void check_options(const Axes& asked, std::span<const Axes> grids) {
  std::vector<std::string> known;
  bool has_e4m3 = false;
  for (const Axes& axes : grids) {
    has_e4m3 = has_e4m3 ||
               std::find(axes.dtypes.begin(), axes.dtypes.end(), DType::e4m3) != axes.dtypes.end();
    for (const Kernel* kernel : select_kernels(axes.kernels).kernels) {
      for (const std::string_view option : kernel->options) {
        if (std::find(known.begin(), known.end(), option) == known.end()) {
          known.emplace_back(option);
        }
      }
    }
  }
  for (const auto& [name, values] : asked.options) {
    if (is_fp8_option(name) && !has_e4m3) {
      throw UsageError(fmt::format("option {} is of e4m3 problems, and this run has none", name),
                       "add --dtype e4m3, or leave the option out");
    }
    // One that is named with its default alone changes nothing of a case.
    if (is_fp8_option(name) && values == std::vector(1, std::string(fp8_values(name)[0]))) continue;
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw UsageError(fmt::format("no kernel of this run has an option '{}'", printable(name)),
                     known.empty() ? options_that_exist() : suggest(name, known));
  }
}

std::vector<Case> make_plan(std::span<const Axes> grids, const Filter& filter,
                            std::span<const PlanDevice> devices, int rounds, std::uint64_t seed,
                            Order order) {
  const std::vector<Entry> grid = entries(grids);
  Random random(seed);
  std::vector<Case> plan;
  for (int round = 0; round < rounds; ++round) {
    std::vector<Entry> sequence = grid;
    if (order == Order::shuffle) random.shuffle(sequence);
    for (Entry& entry : sequence) {
      if (order == Order::shuffle) random.shuffle(entry.kernels);
      for (const auto& [kernel, named] : entry.kernels) {
        for (const PlanDevice& device : devices) {
          if (!filter.matches(kernel->name, entry.problem, device.name)) continue;
          Case item{std::string(kernel->name), entry.problem, device.name, round, {}};
          item.unsupported_reason = refusal(*kernel, entry.problem, device);
          if (!item.unsupported_reason.empty() && !named) continue;
          plan.push_back(std::move(item));
        }
      }
    }
  }
  return plan;
}

}  // namespace rooflash
