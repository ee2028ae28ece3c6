// Records of several runs as one: every run a round, which is the unit of all tests about time.
#pragma once

#include <cstddef>

#include "core/record.hpp"

namespace rooflash {

// Adds the rows of `next` to `record`, their rounds counted from `first_round`. Devices and roofs
// that `record` does not know are added too; what it says of itself stays. Neither may hold the
// same case, device and round twice afterwards.
void add_rounds(Record& record, const Record& next, int first_round);

// One more than the highest round; 0 where there is no row.
int end_of_rounds(const Record& record);

// Keeps the last `most` rounds of each case, and numbers them from 0.
void keep_last_rounds(Record& record, std::size_t most);

// Leaves of each row's samples of each time the least, the middle and the largest, and says so in
// Row::missing; drops the traces. All that a gate needs, in a file that a reviewer can read.
void thin_samples(Record& record);

}  // namespace rooflash
