// The rows of two records, side by side.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

using Rows = std::vector<const Row*>;

// One case on one class of device. Either side may be empty, not both.
struct Match {
  std::string case_id;
  std::string base_class;  // "" where the side is empty
  std::string candidate_class;
  Rows base;  // every round, on every device of the class
  Rows candidate;
};

// What must be equal for times to be compared: "NVIDIA H200, 132 SMs", with ", MIG" or
// ", simulated". Never the index, the host or anything that changes from day to day.
std::string device_class(const Record& record, const Row& row);
// That of all rows measured on `device`.
std::string device_class(const DeviceInfo& device);

// Sorted by case, whatever the order of the rows. A case that ran on one class in `base` and on
// another in `candidate` is one match with two classes. Points into the records.
std::vector<Match> match_rows(const Record& base, const Record& candidate);

// What else differs between two records and may explain a change: "driver: base 580.1, new 581.2".
std::vector<std::string> environment_differences(const Record& base, const Record& candidate);

}  // namespace rooflash
