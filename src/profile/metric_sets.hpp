// The metric sets of `rooflash profile`: what each metric is called on a chip, what it means and
// which are collected together.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rooflash {

struct Metric {
  std::string id;    // "hbm_read_bytes": its name here, the same on every chip
  std::string name;  // CUPTI's on the chip: "dram__bytes_read.sum"
  std::string unit;  // "bytes", "%", "ns", ...
  std::string meaning;
};

// Metrics collected by one configuration of the counters. Groups are cut so that the figures which
// are set against each other stand in one group, and small groups fit in one pass.
using MetricGroup = std::vector<Metric>;

struct MetricSet {
  std::string name;  // memory | compute | stalls | smem
  std::string summary;
  std::vector<MetricGroup> groups;
};

// Names of the sets, in the order they are shown.
const std::vector<std::string>& metric_set_names();

// The chips whose names were checked, the one with a validated card first.
const std::vector<std::string>& known_chips();

// The sets of a chip ("GH100"), in the order of metric_set_names(). Empty for a chip of a
// generation that is not known.
std::vector<MetricSet> metric_sets(std::string_view chip);

// What `rooflash run` collects for each row (measure/metrics.hpp), those of all input types.
MetricSet run_metric_set(std::string_view chip);

// Metrics that were asked for by CUPTI's names, as a set "metrics" of one group; explained where a
// set of the chip has them.
MetricSet named_metrics(std::string_view chip, const std::vector<std::string>& names);

// Why warps do not issue.
struct StallReason {
  const char* name;  // as in the metric: "long_scoreboard"
  const char* meaning;
  const char* next_step;
};
const std::vector<StallReason>& stall_reasons();

}  // namespace rooflash
