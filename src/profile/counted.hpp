// What a worker counted for a profile. Plain data.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

// One group of metrics. A metric that was asked for stands in `values` or in `missing`.
struct CountedGroup {
  std::string status = "not_requested";  // those of Counters::status
  std::string reason;
  std::int64_t passes = 0;                     // launches it took; 0 where none was counted
  std::map<std::string, double> values;        // by metric name; all finite
  std::map<std::string, std::string> missing;  // metric name: why it has no value
};

// What one SM has to give to blocks.
struct SmLimits {
  std::int64_t sm_count = 0;
  std::int64_t warps = 0;
  std::int64_t blocks = 0;
  std::int64_t registers = 0;
  std::int64_t smem_bytes = 0;
  std::int64_t smem_reserved_bytes = 0;  // taken by the system from each block's share
};

// One case profiled. `row` says whether it ran (status, reason) and carries no time; `groups` are
// empty where it did not.
struct CountedProfile {
  Row row;
  std::string chip;     // CUPTI's name: "GH100"
  std::string library;  // CUPTI's file and version, or why there is none
  SmLimits limits;
  std::vector<CountedGroup> groups;  // parallel to those asked for
};

}  // namespace rooflash
