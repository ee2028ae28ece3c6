// What is printed where: results on stdout, messages and progress on stderr.
#pragma once

#include <string>
#include <string_view>

#include "report/table.hpp"

namespace rooflash {

// Throws Error where stdout cannot take it (a full disk); a reader that left early (a closed pipe)
// is no fault.
void print_result(std::string_view text);

// One line on stderr, after "rooflash: ". `text` comes without a line end.
void print_message(std::string_view text);

// "rooflash: error: <what>" and "hint: <hint>" on stderr.
void print_error(std::string_view what, std::string_view hint);

// How tables look on this stdout. `color` is auto, always or never; auto colours a terminal unless
// NO_COLOR is set or TERM is dumb. A terminal whose locale is not UTF-8 gets ASCII alone.
TableOptions table_options(const std::string& color);

// Columns of the terminal on `fd`, else COLUMNS, either at least 40; else 100.
int terminal_width(int fd);

}  // namespace rooflash
