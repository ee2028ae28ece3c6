// Rows of a record as a grid: one group per device and kind of problem, one line per shape, one
// cell per kernel. The terminal table, the Markdown table and the summary are made from it.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"
#include "report/roofs.hpp"

namespace rooflash {

// One problem on one kernel and device; several rounds of it are one cell.
struct Cell {
  const Row* row = nullptr;  // null where the record has no such row; else the round shown: the
                             // middle one by time, or the first that is not `ok`
  int rounds = 0;
};

struct Line {
  const Problem* problem = nullptr;
  bool simulated = false;
  std::vector<Cell> cells;  // parallel to Group::kernels
};

struct Group {
  std::string device;
  std::string gpu;
  const Problem* problem = nullptr;  // of the first line; pass, dtype, head dims, heads, mask hold
  Roofs roofs;
  std::vector<std::string> kernels;  // slowest first, as in Pivot::kernels
  std::vector<Line> lines;           // by key length, query length, batch
};

// Points into `record`, which must outlive it.
struct Pivot {
  std::vector<std::string> kernels;  // slowest first; those with no ranked row last
  std::vector<Group> groups;
};
Pivot pivot(const Record& record);

// "fwd bf16 d128 causal, 16 heads".
std::string group_title(const Group& group);
// "8k", or "1 x 8k" where the query length differs.
std::string line_label(const Line& line);

// "OOM", "n/s", "WRONG", "FAIL", "CRASH", "T/O", "not run"; "ok".
std::string_view status_word(Status status);
// Name of the kernel, with its provider where that is not rooflash and not in the name.
std::string kernel_label(const Row& row);

// The texts of a cell that is `ok`.
struct CellText {
  std::string time;    // "61.2 us"
  std::string tflops;  // "611"
  std::string roof;    // "79 c"; "n/a" where a roof or the bytes are unknown
  std::string hbm;     // "1.02x" of the compulsory bytes; "n/a"
};
CellText cell_text(const Cell& cell, const Roofs& roofs);

// "1 row", "96 rows".
std::string counted(std::int64_t count, std::string_view noun);

// `value` with `digits` significant digits, never with an exponent.
std::string significant(double value, int digits = 3);

}  // namespace rooflash
