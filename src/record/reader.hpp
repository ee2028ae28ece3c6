// Reads records strictly: what is not a record of this schema, or contradicts itself, is refused.
#pragma once

#include <string>

#include "core/record.hpp"

namespace rooflash {

// The whole file at `path`, which must be a regular one; "-" is the standard input, of any kind.
// Throws UsageError with the system's reason, and for over 1 GiB.
std::string read_text(const std::string& path);

// The record at `path` ("-": standard input). Unknown keys are ignored. Throws UsageError with the
// place of the fault: "out.json: rows[12].time_us.median: expected a number, found a string".
Record read_record(const std::string& path);

}  // namespace rooflash
