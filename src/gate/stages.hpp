// The two stages of a paired comparison: all cases, then what is not known to be the same once
// more, in fresh rounds. A change in time stands only where both show it.
#pragma once

#include <string>
#include <vector>

#include "gate/compare.hpp"

namespace rooflash {

// What a first stage leaves to measure again: the cases of which a time is not known to be the
// same, and all cases of such families. Case ids, sorted.
std::vector<std::string> suspects(const Comparison& screening);

// Compares the rounds before `screen_rounds`; suspects in all rounds. Their slower or faster stands
// where the later rounds by themselves say it too; else it is unsure. What was not measured again
// is judged by the first stage alone.
Comparison compare_in_stages(const Record& base, const Record& candidate, const CompareRules& rules,
                             int screen_rounds);

// Turns the changes in `all` that `fresh` does not show to unsure; cases that `fresh` lacks stay.
void confirm(Comparison& all, const Comparison& fresh);

}  // namespace rooflash
