// One parser of untrusted text: fed by libFuzzer where the build has it (-DROOFLASH_FUZZ=ON), and
// by replay.cpp, which runs the committed corpus, everywhere else.
#pragma once

#include <cstddef>
#include <cstdint>

// Returns 0. A text may be refused with a UsageError; anything else that is thrown, and every fault
// that a sanitizer sees, is a finding.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
