// A data table of the report, and how it is written as HTML.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct DataCell {
  std::string text;
  OptDouble sort;  // numeric cells sort by this
};

struct DataRow {
  std::string ref;     // "RECORD:ROW" for the script's filter and legend; "" where not of a row
  std::string kernel;  // for the legend where there is no ref
  std::string anchor;  // of the case in the detail table
  std::vector<DataCell> cells;
};

struct DataTable {
  std::string id;
  std::string caption;
  std::vector<std::string> columns;
  bool links = true;  // the first cell links to the anchor, else the row carries it as id
  std::vector<DataRow> rows{};
  std::size_t total = 0;  // rows in all; those beyond `rows` are made by the script
};

// Longest text of a cell: the record embedded in the page has the whole of it.
inline constexpr std::size_t kMaxCellChars = 300;

// `text`, or its beginning and "... (N bytes)", cut between characters.
std::string shortened(std::string_view text, std::size_t max_bytes = kMaxCellChars);

// A <table> in a box that scrolls, and a line that says how many rows need scripts.
std::string html_table(const DataTable& table);

}  // namespace rooflash
