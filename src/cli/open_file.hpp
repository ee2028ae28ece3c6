// Showing a file in the program that the desktop has for it.
#pragma once

#include <string>

namespace rooflash {

// Opens `path` with xdg-open (`open` on macOS) where stdout is a terminal; says on stderr why not,
// and the address of the file, where that cannot be. Never fails: the file is there all the same.
void open_file(const std::string& path);

}  // namespace rooflash
