// The report: one HTML file that opens from disk, makes no request and reads without scripts.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "report/comparison.hpp"
#include "report/report_run.hpp"
#include "report/time_history.hpp"

namespace rooflash {

struct HtmlOptions {
  std::string title = {};      // "" makes one of the suite and the GPU
  std::string theme = "auto";  // auto | light | dark
  // Up to so many rows in all tables are HTML in full; of more rows, a quarter of that is, and the
  // script adds the others.
  std::size_t static_rows = 500;
  std::vector<RecordComparison> comparisons = {};  // of the records after the first with it
  std::optional<TimeHistory> history = {};         // of three records or more
  std::vector<std::string> sections = {};          // of section_names(); none: all that apply
  std::size_t max_points = 0;                      // drawn in one chart at most; 0: all
};

// The sections of a page, in its order: "summary", "roofline", ...
std::vector<std::string> section_names();

// One report of one run or of several side by side. The same input gives the same bytes.
std::string html_report(std::span<const ReportRun> runs, const HtmlOptions& options);

}  // namespace rooflash
