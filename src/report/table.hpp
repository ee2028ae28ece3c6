// The record as a table for the terminal.
#pragma once

#include <string>
#include <string_view>

#include "core/record.hpp"

namespace rooflash {

struct TableOptions {
  int width = 100;     // columns; kernels that do not fit go into a further block
  bool color = false;  // SGR escape sequences
  bool ascii = false;  // no characters beyond ASCII
};

// Ends with a newline. The same record and options give the same bytes. `noise` says how small a
// change can be seen, after the summary; "" for nothing.
std::string render_table(const Record& record, const TableOptions& options,
                         std::string_view noise = {});

}  // namespace rooflash
