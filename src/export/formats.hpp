// Records in the formats of other tools; docs/formats.md names the definition each one follows.
//
// Only rows that are ok, timed and plausible carry values. Texts of a record are escaped as the
// format asks, and what is unsafe to show stands as \xNN.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct NamedRecord {
  std::string name;  // how messages call it: its path
  Record record;
};

struct Export {
  std::string text;
  // What of the records is not in `text` and why, one sentence each: "4 rows of a.json
  // (unsupported) have no time".
  std::vector<std::string> left_out;
};

// OpenMetrics 1.0.0 text: one gauge a figure and unit, one sample a row, and an info metric that
// also holds the rows that are not ok.
Export export_openmetrics(const NamedRecord& input);

// Bencher Metric Format: cases by name, each with time_us and its interval, model_tflops,
// hbm_bytes.
Export export_bencher(const NamedRecord& input);

// `customSmallerIsBetter` of github-action-benchmark: time and HBM bytes of each case.
Export export_github_action_benchmark(const NamedRecord& input);

// CSV for Apache Otava: a line a record, ordered by date, and a column a case. Otava takes no empty
// field, so only cases that every record has are columns.
Export export_otava_csv(std::span<const NamedRecord> inputs);

// Chrome trace events: a process a device and record, with the phases of each case, its timed
// launches, the SM clock and the power. Throws UsageError where no row has a trace.
Export export_chrome_trace(std::span<const NamedRecord> inputs);

// JUnit XML: a suite a class of device, a test a row.
Export export_junit(std::span<const NamedRecord> inputs);

}  // namespace rooflash
