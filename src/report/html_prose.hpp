// The parts of the report that are text: verdict, summary, advice, environment, method. HTML
// fragments, everything from the records escaped.
#pragma once

#include <span>
#include <string>

#include "core/record.hpp"

namespace rooflash {

std::string default_title(std::span<const Record> records);  // plain text
std::string verdict_html(std::span<const Record> records);
std::string summary_html(std::span<const Record> records);
std::string advice_html(std::span<const Record> records);
std::string environment_html(std::span<const Record> records);
std::string method_html(std::span<const Record> records);

}  // namespace rooflash
