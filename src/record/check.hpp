// Contradictions that a well-typed record can still hold.
#pragma once

#include <string_view>

#include "core/record.hpp"

namespace rooflash {

// Throws UsageError that begins with `place` and names the field: a time on a row that is not ok, a
// case other than kernel and problem say, a median other than that of the samples (within 1e-9,
// where the samples were not thinned), rates other than counts over time (within 1e-6), a modelled
// time on a real device, counters that are ok and null without a reason, negative sizes, ...
void check_row(const Row& row, std::string_view place);

// Checks what holds between rows: no (case, device, round) twice, and every device among those of
// the environment. `place` is the file.
void check_record(const Record& record, std::string_view place);

}  // namespace rooflash
