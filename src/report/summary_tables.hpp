// The tables of the report that are not one line a row: ranking, comparison, history.
#pragma once

#include <span>

#include "report/comparison.hpp"
#include "report/data_table.hpp"
#include "report/report_run.hpp"
#include "report/time_history.hpp"

namespace rooflash {

DataTable ranking_table(std::span<const ReportRun> runs);

// Largest change first. `index` tells the tables of several comparisons apart.
DataTable comparison_table(const RecordComparison& comparison, std::size_t index);

// A line a point, in the order of the history.
DataTable history_table(const TimeHistory& history);

}  // namespace rooflash
