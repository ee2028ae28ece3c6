// What gate/ and history/ find in records, as the report's plain data.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "gate/compare.hpp"
#include "report/comparison.hpp"
#include "report/report_run.hpp"
#include "report/time_history.hpp"

namespace rooflash {

// The records, which must outlive the result, each with its name and what a comparison of each row
// would find. `names`: "" or none takes "run N".
std::vector<ReportRun> runs_to_report(std::span<const Record> records,
                                      const std::vector<std::string>& names);

RecordComparison report_comparison(const Comparison& comparison, std::string base_name,
                                   std::string new_name);

// The cases that have a time in three of the runs or more.
TimeHistory report_history(std::span<const ReportRun> runs);

// "between two such records of 7 rounds, changes of 0.4 % (the middle case) to 1.9 % (CASE) show";
// "" for a record of one round, and of simulated devices alone.
std::string noise_sentence(const Record& record);

}  // namespace rooflash
