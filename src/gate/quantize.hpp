// Quantising the inputs, which e4m3 rows time beside the attention: a measure of its own, judged by
// the rules of time.
#pragma once

#include <optional>

#include "gate/time_shift.hpp"
#include "gate/verdict.hpp"

namespace rooflash {

struct QuantizeComparison {
  std::optional<TimeShift> time;            // empty where a side has none
  std::optional<TimeShift> with_attention;  // both together: shown, never judged
  // Where `time` is empty: `fresh`, `gone` (also in some rounds alone) or `not_comparable`, and
  // why.
  Ruling gap;
};

// Empty where neither side has a time of it.
std::optional<QuantizeComparison> compare_quantizing(const Match& match, const TimeRules& rules);

Ruling ruling_of(const QuantizeComparison& quantize);

// The ruling on a case whose attention is ruled by `attention`: slower where either is, else unsure
// where either is, else faster where either is; not comparable, before all, where quantising is
// not. A gain of one never makes up for the other, because inputs may come quantised. A time that
// is `gone` leaves the case unsure; one that is new changes nothing. The reason names what
// quantising is, unless that is the same or new.
Ruling with_quantizing(Ruling attention, const QuantizeComparison& quantize);

}  // namespace rooflash
