// The data block of a report: what its script draws.
#pragma once

#include <span>
#include <string>

#include "report/html.hpp"

namespace rooflash {

// {"records": [...], "comparisons": [...], "names": [...], "detectable": [[...]], "max_points": N,
// "history": [...]}; docs/formats.md says what these hold. Samples are thinned.
std::string data_json(std::span<const ReportRun> runs, const HtmlOptions& options);

// `row` as the report embeds it: at most `max_samples` samples (at least 2), among them the
// smallest and the largest, in the order taken; the clock samples of the same launches. A thinned
// row says so in `missing` under "time_us.samples".
Row with_thinned_samples(Row row, std::size_t max_samples);

}  // namespace rooflash
