// The report: one HTML file that opens from disk, makes no request and reads without scripts.
#pragma once

#include <span>
#include <string>

#include "core/record.hpp"

namespace rooflash {

struct HtmlOptions {
  std::string title = {};         // "" makes one of the suite and the GPU
  std::string theme = "auto";     // auto | light | dark
  std::size_t static_rows = 500;  // rows of a table written as HTML; the script adds the others
};

// One report of one record or of several side by side. The same input gives the same bytes.
std::string html_report(std::span<const Record> records, const HtmlOptions& options);

// `record` as the report embeds it: at most `max_samples` samples a row (at least 2), among them
// the smallest and the largest, in the order taken; the clock samples of the same launches. A
// thinned row says so in `missing` under "time_us.samples".
Record with_thinned_samples(const Record& record, std::size_t max_samples);

}  // namespace rooflash
