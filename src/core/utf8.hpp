// UTF-8 text of unknown origin, sequence by sequence.
#pragma once

#include <cstddef>
#include <string_view>

namespace rooflash {

struct Utf8 {
  std::size_t length = 0;  // bytes; 0 where the text does not begin with a valid sequence
  char32_t code = 0;
};

// The sequence at the front of `text`, which holds one byte at least.
Utf8 first_utf8(std::string_view text);

// Whether showing `code` could do more than show a character: control characters (C0 with tab and
// newline, DEL, C1), line separators, bidirectional marks and overrides, and marks of no width that
// hide differences.
bool is_unsafe_to_show(char32_t code);

}  // namespace rooflash
