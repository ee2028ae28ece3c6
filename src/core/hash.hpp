// A short name for a longer text. Not cryptographic.
#pragma once

#include <string>
#include <string_view>

namespace rooflash {

// FNV-1a of `text`, 64 bits, as 16 hex digits.
std::string hash_hex(std::string_view text);

}  // namespace rooflash
