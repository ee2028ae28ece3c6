#include "core/fp8.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace rooflash {
namespace {

struct Option {
  std::string_view name;
  std::vector<std::string_view> values;  // the default first
};

const std::vector<Option>& options() {
  static const std::vector<Option> table = {
      {"scale", {"block", "head", "tensor"}},
      {"hadamard", {"off", "on"}},
      {"accum", {"exact", "fast"}},
  };
  return table;
}

// Place of the option's value in its list.
std::size_t chosen(const Problem& p, std::string_view name) {
  const auto option = std::find_if(options().begin(), options().end(),
                                   [&](const Option& one) { return one.name == name; });
  const auto set = p.options.find(std::string(name));
  if (set == p.options.end()) return 0;
  const auto& values = option->values;
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), set->second) -
                                  values.begin());
}

}  // namespace

Fp8Modes fp8_modes(const Problem& p) {
  constexpr ScaleSpan kSpans[] = {ScaleSpan::block, ScaleSpan::head, ScaleSpan::tensor};
  return {kSpans[chosen(p, "scale")], chosen(p, "hadamard") == 1, chosen(p, "accum") == 0};
}

std::string invalid_fp8_options(const Problem& p) {
  for (const Option& option : options()) {
    const auto set = p.options.find(std::string(option.name));
    if (set == p.options.end()) continue;
    const std::size_t value = chosen(p, option.name);
    if (value == option.values.size()) {
      return fmt::format("option {}: '{}' is not one of {}", option.name, printable(set->second),
                         fmt::join(option.values, ", "));
    }
    if (value == 0) {
      return fmt::format("{}={} is what a case without the option has", option.name, set->second);
    }
  }
  if (fp8_modes(p).hadamard && !std::has_single_bit(static_cast<std::uint64_t>(p.headdim))) {
    return fmt::format("hadamard=on takes head dims of Q and K that are powers of 2, not {}",
                       p.headdim);
  }
  return {};
}

std::int64_t scale_elements(const Problem& p) {
  if (p.dtype != DType::e4m3) return 0;
  return p.batch * (p.heads_q * q_scale_blocks(p) + p.heads_kv * (2 * kv_scale_blocks(p) + 1));
}

void drop_fp8_defaults(Problem& p) {
  for (const Option& option : options()) {
    const auto set = p.options.find(std::string(option.name));
    if (set != p.options.end() && set->second == option.values[0]) p.options.erase(set);
  }
}

}  // namespace rooflash
