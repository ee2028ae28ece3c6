#include "gate/rounds.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

namespace rooflash {
namespace {

// Whether there were more samples than are kept.
bool thin(std::optional<TimeUs>& time, std::string_view name, Row& row) {
  constexpr std::size_t kKept = 3;
  if (!time || time->samples.size() <= kKept) return false;
  const double largest = *std::max_element(time->samples.begin(), time->samples.end());
  time->samples = {time->min, time->median, largest};
  row.missing[std::string(name) + ".samples"] = "least, median and largest of all";
  return true;
}

}  // namespace

void add_rounds(Record& record, const Record& next, int first_round) {
  for (const DeviceInfo& device : next.environment.devices) {
    std::vector<DeviceInfo>& known = record.environment.devices;
    if (std::none_of(known.begin(), known.end(),
                     [&](const DeviceInfo& one) { return one.device == device.device; })) {
      known.push_back(device);
    }
  }
  for (const Ceilings& roofs : next.ceilings) {
    if (std::none_of(record.ceilings.begin(), record.ceilings.end(),
                     [&](const Ceilings& one) { return one.device == roofs.device; })) {
      record.ceilings.push_back(roofs);
    }
  }
  record.complete = record.complete && next.complete;
  for (const Row& row : next.rows) {
    record.rows.push_back(row);
    record.rows.back().round += first_round;
  }
}

int end_of_rounds(const Record& record) {
  int end = 0;
  for (const Row& row : record.rows) end = std::max(end, row.round + 1);
  return end;
}

void keep_last_rounds(Record& record, std::size_t most) {
  std::map<std::string, std::set<int>> rounds;  // of each case
  for (const Row& row : record.rows) rounds[row.case_id].insert(row.round);
  const auto first_kept = [&](const Row& row) {
    const std::set<int>& all = rounds[row.case_id];
    return std::prev(all.end(), static_cast<std::ptrdiff_t>(std::min(most, all.size())));
  };
  std::erase_if(record.rows, [&](const Row& row) { return row.round < *first_kept(row); });
  for (Row& row : record.rows) {
    row.round =
        static_cast<int>(std::distance(first_kept(row), rounds[row.case_id].find(row.round)));
  }
}

void thin_samples(Record& record) {
  for (Row& row : record.rows) {
    row.trace.reset();
    thin(row.quantize_us, "quantize_us", row);
    if (!thin(row.time_us, "time_us", row)) continue;
    if (row.clock_mhz && !row.clock_mhz->samples.empty()) {
      row.clock_mhz->samples.clear();
      row.missing["clock_mhz.samples"] = "left out with the time samples";
    }
  }
}

}  // namespace rooflash
