// Words for a POSIX shell.
#pragma once

#include <string>
#include <string_view>

namespace rooflash {

// `text` as one word: quoted where it is empty or holds anything beyond the characters that never
// need it.
std::string shell_word(std::string_view text);

}  // namespace rooflash
