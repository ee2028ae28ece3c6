// The record in formats for other programs.
#pragma once

#include <string>

#include "core/record.hpp"

namespace rooflash {

// GitHub-flavoured Markdown: summary, one table per group, rows that are not ok, warnings.
std::string render_markdown(const Record& record);

// RFC 4180 (CRLF line ends) with a fixed header; one line per row of the record, in its order.
// A value that was not measured is an empty field, and the column `missing` says why.
std::string render_csv(const Record& record);

}  // namespace rooflash
