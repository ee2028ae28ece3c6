#include "gate/quantize.hpp"

#include <fmt/format.h>

#include "core/units.hpp"

namespace rooflash {
namespace {

// Why a row of one side has no time of quantising; "" where it does not say.
std::string why_missing(const Rows& rows) {
  for (const Row* row : rows) {
    const auto reason = row->missing.find("quantize_us");
    if (reason != row->missing.end()) return reason->second;
  }
  return {};
}

bool is_timed(const Rows& rows) {
  for (const Row* row : rows) {
    if (row->quantize_us) return true;
  }
  return false;
}

int weight(Verdict verdict) {
  switch (verdict) {
    case Verdict::slower:
      return 3;
    case Verdict::unsure:
    case Verdict::gone:
      return 2;
    case Verdict::faster:
      return 1;
    default:
      return 0;
  }
}

// "slower: 247 us to 494 us, +100.0%"
std::string describe(const QuantizeComparison& quantize, const Ruling& ruling) {
  std::string text(to_string(ruling.verdict));
  const char* separator = ": ";
  if (quantize.time) {
    text += fmt::format("{}{}", separator, change_text(*quantize.time));
    separator = "; ";
  }
  return ruling.reason.empty() ? text : text + separator + ruling.reason;
}

}  // namespace

std::optional<QuantizeComparison> compare_quantizing(const Match& match, const TimeRules& rules) {
  const bool in_base = is_timed(match.base);
  const bool in_candidate = is_timed(match.candidate);
  QuantizeComparison quantize;
  if (!in_base && !in_candidate) return std::nullopt;
  if (in_base && in_candidate) {
    quantize.time = quantize_shift(match, rules);
    quantize.with_attention = with_quantize_shift(match, rules);
  } else if (in_base) {
    quantize.gap = {Verdict::gone, why_missing(match.candidate)};
  } else {
    quantize.gap = {Verdict::fresh, "base: " + why_missing(match.base)};
  }
  return quantize;
}

Ruling ruling_of(const QuantizeComparison& quantize) {
  return quantize.time ? ruling_of(*quantize.time) : quantize.gap;
}

Ruling with_quantizing(Ruling attention, const QuantizeComparison& quantize) {
  const Ruling own = ruling_of(quantize);
  if (weight(own.verdict) == 0) return attention;
  if (weight(own.verdict) > weight(attention.verdict)) {
    attention.verdict = own.verdict == Verdict::gone ? Verdict::unsure : own.verdict;
  }
  // Too few rounds, for one as for the other: said once.
  if (!own.reason.empty() && own.reason == attention.reason) return attention;
  if (!attention.reason.empty()) attention.reason += "; ";
  attention.reason += "quantising " + describe(quantize, own);
  return attention;
}

}  // namespace rooflash
