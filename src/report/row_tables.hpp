// The tables behind the charts: one line a row of the runs. reports/js/tables.js makes the same
// lines for the rows beyond the first ones; tests/browser holds the two equal.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "report/data_table.hpp"
#include "report/report_run.hpp"

namespace rooflash {

// Anchor of a row: its case id, with device, round and record so that it is unique.
std::string row_anchor(const Row& row, std::size_t record_index);

// Each with its first `limit` rows.
DataTable roofline_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable throughput_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable speedup_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable bytes_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable memory_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable accuracy_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable noise_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable model_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable not_ok_table(std::span<const ReportRun> runs, std::size_t limit);
DataTable detail_table(std::span<const ReportRun> runs, std::size_t limit);

}  // namespace rooflash
