// The times of cases over many records, as the report shows them. Plain data: history/ computes,
// cli/ hands it on.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

// A case in one record; of several rounds the median.
struct HistoryPoint {
  std::string date;  // of the record, UTC
  std::string commit;
  std::string run;  // ReportRun::name
  double time_us = 0;
  double ci95_low_us = 0;
  double ci95_high_us = 0;
  double level_us = 0;  // median of the points between the changes around it
  OptDouble change;     // new level / old one, at the first point of a new level
};

struct CaseHistory {
  std::string case_id;
  std::string where;  // GPU model and way of measuring: "NVIDIA H200, 132 SMs, cold L2, burst"
  std::string kernel;
  Problem problem;
  bool simulated = false;
  std::vector<HistoryPoint> points;  // by date
};

struct TimeHistory {
  double threshold = 0;            // relative change of a level that counts
  int changes = 0;                 // in all
  int too_short = 0;               // cases with too few points for a change to show
  std::string fault;               // why there is no history; "" where there is one
  std::vector<CaseHistory> cases;  // those with three points or more, the largest change first
};

}  // namespace rooflash
