// A record as a report shows it beside others, with what other modules found in it. Plain data:
// gate/ computes, cli/ hands it on.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

// The least change in a case's time that a comparison would find, or why it is unknown.
struct Detectable {
  OptDouble change;    // relative: 0.013
  std::string reason;  // where there is none
};

struct ReportRun {
  const Record* record = nullptr;        // must outlive this
  std::string name;                      // "run 1", or a label; shown where there are several
  std::vector<Detectable> detectable{};  // of each row; empty where nobody computed it

  // `row` is one of the record's.
  Detectable detectable_of(const Row& row) const;
};

// Each record under the name "run N". They must outlive the result.
std::vector<ReportRun> report_runs(std::span<const Record> records);

}  // namespace rooflash
