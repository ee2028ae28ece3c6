// The tables of the report that are not one line a row: ranking, and comparison of records.
#pragma once

#include <span>

#include "report/comparison.hpp"
#include "report/data_table.hpp"

namespace rooflash {

DataTable ranking_table(std::span<const Record> records);

// Largest change first. `index` tells the tables of several comparisons apart.
DataTable comparison_table(const RecordComparison& comparison, std::size_t index);

}  // namespace rooflash
