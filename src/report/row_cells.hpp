// Cells of the report's tables: a row's figures as texts, each with its unit or the reason why it
// is missing.
#pragma once

#include <string>

#include "core/record.hpp"
#include "report/data_table.hpp"
#include "report/roofs.hpp"

namespace rooflash {

DataCell text_cell(std::string text);
// "n/a: " and why `path` has no value in this row.
DataCell missing_cell(const Row& row, const char* path);
// `value` in `unit`, as bytes, or as a time; or a missing cell.
DataCell value_cell(const Row& row, const char* path, OptDouble value, const char* unit = "");
DataCell bytes_cell(const Row& row, const char* path, OptDouble value);
DataCell time_cell(const Row& row, const char* path, OptDouble value_us);

// Empty where either is, or `b` is not above 0.
OptDouble quotient(OptDouble a, OptDouble b);

// "4273 GB/s, 799 TFLOPS (measured)".
std::string roof_text(const Roofs& roofs);
// "clock_unsettled, throttle: sw_power_cap"; "none".
std::string flags_text(const Row& row);
std::string verify_text(const VerifyResult& verify);
std::string resources_text(const Row& row);
// Why the row is not ok.
std::string reason_text(const Row& row);

}  // namespace rooflash
