#include "sweep/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/fp8.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "sweep/list_grammar.hpp"

namespace rooflash {
namespace {

// Names of an enumeration, in its order, and back.
template <class Value>
std::vector<Value> select_values(std::string_view text, const std::vector<Value>& values,
                                 std::string_view flag) {
  std::vector<std::string> names;
  for (const Value value : values) names.emplace_back(to_string(value));
  std::vector<Value> selected;
  for (const std::string& name : select_names(parse_elements(text, flag), names, flag)) {
    const auto at = std::find(names.begin(), names.end(), name) - names.begin();
    selected.push_back(values[static_cast<std::size_t>(at)]);
  }
  return selected;
}

// "128", "192-128" (Q and K, then V), or a range.
std::vector<Headdim> parse_headdims(std::string_view text, std::string_view flag) {
  std::vector<Headdim> headdims;
  for (const std::string& element : parse_elements(text, flag)) {
    const std::size_t dash = element.find('-');
    if (dash != std::string::npos && dash > 0) {
      headdims.push_back({parse_count(element.substr(0, dash), flag),
                          parse_count(element.substr(dash + 1), flag)});
      continue;
    }
    for (const std::int64_t d : parse_counts(element, flag)) headdims.push_back({d, d});
  }
  return headdims;
}

std::vector<bool> parse_causal(std::string_view text, std::string_view flag) {
  if (text == "true") return {true};
  if (text == "false") return {false};
  if (text == "both") return {false, true};
  throw UsageError(fmt::format("{}: '{}' is not true, false or both", flag, printable(text)));
}

std::pair<std::int64_t, std::int64_t> parse_window(std::string_view text, std::string_view flag) {
  const auto side = [&](std::string_view part) -> std::int64_t {
    if (part == "inf" || part == "-1") return kUnbounded;
    return part == "0" ? 0 : parse_count(part, flag);
  };
  const std::size_t comma = text.find(',');
  if (comma == std::string_view::npos) {
    throw UsageError(fmt::format("{}: '{}' has no right side", flag, printable(text)),
                     "write LEFT,RIGHT, such as 255,0 or inf,128");
  }
  return {side(text.substr(0, comma)), side(text.substr(comma + 1))};
}

// An option named twice takes both values.
void add_options(Axes& axes, std::string_view text, std::string_view flag) {
  std::map<std::string, std::vector<std::string>> options;
  for (const std::string& element : parse_elements(text, flag)) {
    const std::size_t equals = element.find('=');
    if (equals == 0 || equals == std::string::npos || equals + 1 == element.size()) {
      throw UsageError(fmt::format("{}: '{}' is not NAME=VALUE", flag, printable(element)));
    }
    // Options become part of case ids, which stay greppable and safe as file names.
    for (const char c : element) {
      const bool safe = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                        (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.' || c == '=';
      if (!safe) {
        throw UsageError(fmt::format("{}: '{}' may hold only letters, digits, '_', '-' and '.'",
                                     flag, printable(element)));
      }
    }
    options[element.substr(0, equals)].push_back(element.substr(equals + 1));
  }
  for (auto& [name, values] : options) axes.options[name] = std::move(values);
}

void set_fp8_option(Axes& axes, const char* option, std::string_view text, std::string_view flag) {
  const auto known = fp8_values(option);
  axes.options[option] =
      select_names(parse_elements(text, flag), {known.begin(), known.end()}, flag);
}

using Setter = void (*)(Axes&, std::string_view text, std::string_view flag);

struct AxisEntry {
  std::string name;
  Setter set;
};

// Setting one of two ways to say the same (batch-size or total-tokens) takes back the other, so
// that a flag overrides a suite.
const std::vector<AxisEntry>& entries() {
  using Text = std::string_view;
  static const std::vector<AxisEntry> table = {
      {"kernel", [](Axes& a, Text t, Text f) { a.kernels = parse_elements(t, f); }},
      {"pass",
       [](Axes& a, Text t, Text f) {
         a.passes = select_values<Pass>(t, {Pass::fwd, Pass::bwd}, f);
       }},
      {"dtype",
       [](Axes& a, Text t, Text f) {
         a.dtypes =
             select_values<DType>(t, {DType::fp32, DType::fp16, DType::bf16, DType::e4m3}, f);
       }},
      {"headdim",
       [](Axes& a, Text t, Text f) {
         a.headdims = parse_headdims(t, f);
         a.headdim_v.reset();
       }},
      {"headdim-v", [](Axes& a, Text t, Text f) { a.headdim_v = parse_count(t, f); }},
      {"seqlen", [](Axes& a, Text t, Text f) { a.seqlens_kv = parse_counts(t, f); }},
      {"seqlen-q", [](Axes& a, Text t, Text f) { a.seqlens_q = parse_counts(t, f); }},
      {"batch-size", [](Axes& a, Text t, Text f) { a.batches = parse_counts(t, f); }},
      {"total-tokens",
       [](Axes& a, Text t, Text f) {
         a.total_tokens = parse_count(t, f);
         a.batches.clear();
       }},
      {"nheads", [](Axes& a, Text t, Text f) { a.nheads = parse_counts(t, f); }},
      {"hidden-size",
       [](Axes& a, Text t, Text f) {
         a.hidden_size = parse_count(t, f);
         a.nheads.clear();
       }},
      {"nheads-kv", [](Axes& a, Text t, Text f) { a.nheads_kv = parse_counts(t, f); }},
      {"gqa-ratio",
       [](Axes& a, Text t, Text f) {
         a.gqa_ratio = parse_count(t, f);
         a.nheads_kv.clear();
       }},
      {"causal", [](Axes& a, Text t, Text f) { a.causal = parse_causal(t, f); }},
      {"align",
       [](Axes& a, Text t, Text f) {
         const std::optional<Align> align = parse_align(t);
         if (!align) {
           throw UsageError(fmt::format("{}: unknown name '{}'", f, printable(t)),
                            suggest(t, {"bottom-right", "top-left"}));
         }
         a.align = *align;
       }},
      {"window", [](Axes& a, Text t, Text f) { a.window = parse_window(t, f); }},
      {"distribution",
       [](Axes& a, Text t, Text f) {
         a.distributions = select_values<Distribution>(
             t,
             {Distribution::normal, Distribution::outlier, Distribution::large,
              Distribution::negative, Distribution::constant, Distribution::biased,
              Distribution::biased_less, Distribution::peaky},
             f);
       }},
      {"fp8-scale", [](Axes& a, Text t, Text f) { set_fp8_option(a, "scale", t, f); }},
      {"fp8-hadamard", [](Axes& a, Text t, Text f) { set_fp8_option(a, "hadamard", t, f); }},
      {"fp8-accum", [](Axes& a, Text t, Text f) { set_fp8_option(a, "accum", t, f); }},
      {"fp8-max", [](Axes& a, Text t, Text f) { set_fp8_option(a, "max", t, f); }},
      {"fp8-smooth", [](Axes& a, Text t, Text f) { set_fp8_option(a, "smooth", t, f); }},
      {"fp8-out", [](Axes& a, Text t, Text f) { set_fp8_option(a, "out", t, f); }},
      {"option", add_options},
      {"device", [](Axes& a, Text t, Text f) { a.devices = parse_elements(t, f); }},
  };
  return table;
}

}  // namespace

const std::vector<std::string>& axis_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const AxisEntry& entry : entries()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

void set_axis(Axes& axes, std::string_view name, std::string_view text, std::string_view flag) {
  for (const AxisEntry& entry : entries()) {
    if (entry.name == name) return entry.set(axes, text, flag);
  }
  throw UsageError(fmt::format("{}: unknown axis '{}'", flag, printable(name)),
                   suggest(name, axis_names()));
}

}  // namespace rooflash
