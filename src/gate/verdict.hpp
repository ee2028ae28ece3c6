// What a gate can say of a case, and what rows say before any figure is looked at.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "gate/match.hpp"

namespace rooflash {

enum class Verdict {
  slower,          // more time, HBM bytes, tensor operations, registers, ...: confirmed
  faster,          // never fails
  same,            // no change that matters, confirmed
  unsure,          // the evidence decides neither
  fresh,           // "new": the base has no result of this case
  gone,            // the base has one, the new record none
  wrong,           // the new result is wrong
  failed,          // the new row crashed, timed out, was not verified, or cannot be true
  not_comparable,  // other GPU, definition or way of measuring; simulated against measured
};
std::string_view to_string(Verdict verdict);

struct Ruling {
  Verdict verdict = Verdict::unsure;
  std::string reason;  // "" where the verdict needs none
};

// Unsupported or out of memory, or absent, and the base has no result either: no case to judge.
bool is_without_result(const Match& match);

// Why a row can be no evidence whatever it is compared with: wrong, failed, not verified,
// implausible. "" where it can, and for rows without a result (unsupported, out of memory).
std::string unfit_reason(const Row& row);

// The verdict where the rows cannot be compared: a missing, wrong, failed, unverified or
// implausible one never passes. Empty where both sides are fit. Rounds stand or fall together.
// `across_devices` lets two models of GPU be compared; never a simulated one with a measured one.
std::optional<Ruling> rule_out(const Match& match, bool across_devices = false);

}  // namespace rooflash
