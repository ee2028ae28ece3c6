// Words for a POSIX shell.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rooflash {

// `text` as one word: quoted where it is empty or holds anything beyond the characters that never
// need it.
std::string shell_word(std::string_view text);

// The words of a command on one line, each quoted where it must be.
std::string shell_command(const std::vector<std::string>& words);

}  // namespace rooflash
