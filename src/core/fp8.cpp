#include "core/fp8.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <string_view>

#include "core/units.hpp"

namespace rooflash {
namespace {

constexpr std::string_view kScales[] = {"block", "head", "tensor"};
constexpr std::string_view kSwitch[] = {"off", "on"};
constexpr std::string_view kSums[] = {"exact", "fast"};
constexpr std::string_view kMaxima[] = {"lazy", "true"};
constexpr std::string_view kOutputs[] = {"bf16", "fp16", "e4m3"};

// Place of the option's value in its list.
std::size_t chosen(const Problem& p, std::string_view option) {
  const auto set = p.options.find(std::string(option));
  if (set == p.options.end()) return 0;
  const auto values = fp8_values(option);
  return static_cast<std::size_t>(std::find(values.begin(), values.end(), set->second) -
                                  values.begin());
}

}  // namespace

bool is_fp8_option(std::string_view name) {
  return std::find(std::begin(kFp8Options), std::end(kFp8Options), name) != std::end(kFp8Options);
}

std::span<const std::string_view> fp8_values(std::string_view option) {
  if (option == "scale") return kScales;
  if (option == "accum") return kSums;
  if (option == "max") return kMaxima;
  if (option == "out") return kOutputs;
  return kSwitch;  // hadamard, smooth
}

std::string_view fp8_value(const Problem& p, std::string_view option) {
  if (p.dtype != DType::e4m3) return "";
  const auto set = p.options.find(std::string(option));
  return set == p.options.end() ? fp8_values(option).front() : std::string_view(set->second);
}

Fp8Modes fp8_modes(const Problem& p) {
  constexpr ScaleSpan kSpans[] = {ScaleSpan::block, ScaleSpan::head, ScaleSpan::tensor};
  constexpr DType kTypes[] = {DType::bf16, DType::fp16, DType::e4m3};
  return {.scale = kSpans[chosen(p, "scale")],
          .hadamard = chosen(p, "hadamard") == 1,
          .exact_accumulation = chosen(p, "accum") == 0,
          .true_maximum = chosen(p, "max") == 1,
          .smooth_values = chosen(p, "smooth") == 1,
          .output = kTypes[chosen(p, "out")]};
}

std::string invalid_fp8_options(const Problem& p) {
  for (const std::string_view option : kFp8Options) {
    const auto set = p.options.find(std::string(option));
    if (set == p.options.end()) continue;
    const std::size_t value = chosen(p, option);
    if (value == fp8_values(option).size()) {
      return fmt::format("option {}: '{}' is not one of {}", option, printable(set->second),
                         fmt::join(fp8_values(option), ", "));
    }
    if (value == 0) {
      return fmt::format("{}={} is what a case without the option has", option, set->second);
    }
  }
  return {};
}

std::string unusable_modes(const Problem& p) {
  if (p.dtype != DType::e4m3) return {};
  const Fp8Modes modes = fp8_modes(p);
  if (modes.hadamard && !std::has_single_bit(static_cast<std::uint64_t>(p.headdim))) {
    return fmt::format("hadamard=on takes head dims of Q and K that are powers of 2, not {}",
                       p.headdim);
  }
  if (modes.smooth_values && modes.output == DType::e4m3) {
    return "out=e4m3 is in units of V's scale, which is no measure of O with smooth=on";
  }
  return {};
}

std::int64_t v_mean_elements(const Problem& p) {
  if (p.dtype != DType::e4m3 || !fp8_modes(p).smooth_values) return 0;
  return p.batch * p.heads_kv * p.headdim_v;
}

std::int64_t scale_elements(const Problem& p) {
  if (p.dtype != DType::e4m3) return 0;
  return p.batch * (p.heads_q * q_scale_blocks(p) + p.heads_kv * (2 * kv_scale_blocks(p) + 1)) +
         v_mean_elements(p);
}

void drop_fp8_defaults(Problem& p) {
  for (const std::string_view option : kFp8Options) {
    const auto set = p.options.find(std::string(option));
    if (set != p.options.end() && set->second == fp8_values(option)[0]) p.options.erase(set);
  }
}

}  // namespace rooflash
