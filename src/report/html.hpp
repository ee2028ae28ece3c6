// The report: one HTML file that opens from disk, makes no request and reads without scripts.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "report/comparison.hpp"

namespace rooflash {

struct HtmlOptions {
  std::string title = {};      // "" makes one of the suite and the GPU
  std::string theme = "auto";  // auto | light | dark
  // Up to so many rows in all tables are HTML in full; of more rows, a quarter of that is, and the
  // script adds the others.
  std::size_t static_rows = 500;
  std::vector<RecordComparison> comparisons = {};  // of the records after the first with it
};

// One report of one record or of several side by side. The same input gives the same bytes.
std::string html_report(std::span<const Record> records, const HtmlOptions& options);

// `row` as the report embeds it: at most `max_samples` samples (at least 2), among them the
// smallest and the largest, in the order taken; the clock samples of the same launches. A thinned
// row says so in `missing` under "time_us.samples".
Row with_thinned_samples(Row row, std::size_t max_samples);

}  // namespace rooflash
