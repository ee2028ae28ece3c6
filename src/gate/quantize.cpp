#include "gate/quantize.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string>

#include "core/units.hpp"

namespace rooflash {
namespace {

bool is_timed(const Row* row) {
  return row->quantize_us.has_value();
}

// Why the first row without a time of quantising has none; "" where it does not say.
std::string why_missing(const Rows& rows) {
  const auto row = std::find_if_not(rows.begin(), rows.end(), is_timed);
  if (row == rows.end()) return {};
  const auto reason = (*row)->missing.find("quantize_us");
  return reason != (*row)->missing.end() ? reason->second : "";
}

// "event and graph"; "" where there is one.
std::string timers(const Match& match) {
  std::set<std::string> all;
  for (const Rows* rows : {&match.base, &match.candidate}) {
    for (const Row* row : *rows) {
      if (is_timed(row)) all.insert(row->quantize_us->timer);
    }
  }
  return all.size() > 1 ? fmt::format("{} and {}", *all.begin(), *all.rbegin()) : "";
}

int weight(Verdict verdict) {
  switch (verdict) {
    case Verdict::not_comparable:
      return 4;
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
  const bool in_base = std::any_of(match.base.begin(), match.base.end(), is_timed);
  const auto timed = std::count_if(match.candidate.begin(), match.candidate.end(), is_timed);
  QuantizeComparison quantize;
  if (!in_base && timed == 0) return std::nullopt;
  if (!in_base) {
    quantize.gap = {Verdict::fresh, "base: " + why_missing(match.base)};
  } else if (timed < std::ssize(match.candidate)) {
    quantize.gap = {Verdict::gone, why_missing(match.candidate)};
  } else if (const std::string different = timers(match); !different.empty()) {
    quantize.gap = {Verdict::not_comparable, "other timers: " + different};
  } else {
    quantize.time = quantize_shift(match, rules);
    quantize.with_attention = with_quantize_shift(match, rules);
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
  // Said once where it is so of both: too few rounds.
  if (quantize.time && !quantize.time->shift.ci95 && own.reason == attention.reason) {
    return attention;
  }
  if (!attention.reason.empty()) attention.reason += "; ";
  attention.reason += "quantising " + describe(quantize, own);
  return attention;
}

}  // namespace rooflash
