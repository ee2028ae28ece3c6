// Data tables of the report, as values: html.cpp writes them as HTML and as JSON for the script.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct DataCell {
  std::string text;
  OptDouble sort;  // numeric cells sort by this
};

struct DataRow {
  std::string case_id;  // for the filter
  std::string kernel;   // for the legend
  std::string anchor;   // of the case in the detail table
  std::vector<DataCell> cells;
};

struct DataTable {
  std::string id;
  std::string caption;
  std::vector<std::string> columns;
  bool links = true;  // the first cell links to the anchor, else the row carries it as id
  std::vector<DataRow> rows;
};

// Anchor of a row: its case id, with device, round and record so that it is unique.
std::string row_anchor(const Row& row, std::size_t record_index);

DataTable ranking_table(std::span<const Record> records);
DataTable roofline_table(std::span<const Record> records);
DataTable throughput_table(std::span<const Record> records);
DataTable bytes_table(std::span<const Record> records);
DataTable not_ok_table(std::span<const Record> records);
DataTable detail_table(std::span<const Record> records);

// <table> with the first `static_rows` rows; the others as a JSON data block after it.
std::string html_table(const DataTable& table, std::size_t static_rows);

}  // namespace rooflash
