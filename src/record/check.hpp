// Contradictions that a well-typed record can still hold.
#pragma once

#include <string_view>

#include "core/record.hpp"

namespace rooflash {

// Throws UsageError that begins with `place` and names the field: a time on a row that is not ok,
// n unequal to the number of samples, an invalid problem, counters that are ok and null without a
// reason, negative sizes, ...
void check_row(const Row& row, std::string_view place);

// Checks what holds between rows: no (case, device, round) twice. `place` is the file.
void check_record(const Record& record, std::string_view place);

}  // namespace rooflash
