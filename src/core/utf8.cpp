#include "core/utf8.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace rooflash {

Utf8 first_utf8(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80U) return {1, first};
  const std::size_t length = first < 0xC2U   ? 0
                             : first < 0xE0U ? 2
                             : first < 0xF0U ? 3
                             : first < 0xF5U ? 4
                                             : 0;
  if (length == 0 || text.size() < length) return {};
  char32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return {};
    code = (code << 6U) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (overlong || surrogate || code > 0x10FFFF) return {};
  return {length, code};
}

bool is_unsafe_to_show(char32_t code) {
  constexpr std::array<std::pair<char32_t, char32_t>, 9> kRanges = {{
      {0x00, 0x1F},      // C0
      {0x7F, 0x9F},      // DEL, C1
      {0x61C, 0x61C},    // Arabic letter mark
      {0x200B, 0x200F},  // zero width, direction marks
      {0x2028, 0x202E},  // line separators, embeddings, overrides
      {0x2060, 0x2064},  // word joiner, invisible operators
      {0x2066, 0x206F},  // isolates, deprecated format characters
      {0xFEFF, 0xFEFF},  // byte order mark
      {0xFFF9, 0xFFFB},  // interlinear annotation
  }};
  return std::any_of(kRanges.begin(), kRanges.end(), [code](const auto& range) {
    return code >= range.first && code <= range.second;
  });
}

}  // namespace rooflash
