// Which output rows are compared with the reference where all would take too long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

struct SampledRow {
  std::int64_t batch = 0;
  std::int64_t head = 0;  // query head
  std::int64_t row = 0;   // query
};

struct RowSample {
  std::vector<SampledRow> rows;  // distinct, ordered by batch, head, row
  bool all = false;
  std::string description;  // for VerifyResult::rows_checked
};

// Every row where there are at most `max_rows`; else about `max_rows` (never more) of them: first,
// last, both sides of tile edges (multiples of 64 and 128) and random rows, over heads and batch
// items that include the first and the last. The same arguments give the same rows.
RowSample sample_rows(const Problem& problem, std::int64_t max_rows, std::uint64_t seed);

}  // namespace rooflash
