// The standard descriptors of a process.
#pragma once

namespace rooflash {

// Opens /dev/null on each of stdin, stdout and stderr that is closed. Call before any other file is
// opened: the next one would take the free number, and what is printed would land in it.
void fill_standard_descriptors();

}  // namespace rooflash
