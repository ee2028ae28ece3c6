// A profile of one case: counted metrics with their meaning, and what follows from them. Plain
// data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profile/counted.hpp"
#include "profile/metric_sets.hpp"
#include "profile/occupancy.hpp"

namespace rooflash {

struct MeasuredMetric {
  Metric metric;
  OptDouble value;
  std::string missing;  // why there is no value
};

struct MeasuredSet {
  std::string name;  // memory | compute | stalls | smem | metrics (names given by the user)
  std::int64_t passes = 0;
  std::vector<MeasuredMetric> metrics;
};

// In the manner of Nsight Compute's rules.
struct Finding {
  std::string what;
  std::string evidence;
  OptDouble gain_pct;   // at most this share of the time; empty where no formula gives one
  std::string formula;  // of the gain
  std::string next_step;
};

struct Profile {
  Tool tool;
  DeviceInfo device;
  std::string driver;
  std::string l2;  // cold | warm
  Row row;
  std::string chip;
  std::string library;
  std::optional<Occupancy> occupancy;  // theoretical, of the main kernel
  std::vector<MeasuredSet> sets;
  std::vector<Finding> findings;  // the largest gain first
};

// Joins what was asked for with what was counted, and draws the findings. `counted.groups` are
// those of `sets` in order.
Profile make_profile(const std::vector<MetricSet>& sets, CountedProfile counted);

// The value of a metric of a set by its id, where it was counted.
OptDouble figure(const Profile& profile, std::string_view set, std::string_view id);

// What the figures say (profile/findings.cpp).
std::vector<Finding> find(const Profile& profile);

// For the terminal, at most `width` columns where words allow, and for machines (docs/formats.md).
std::string profile_text(const Profile& profile, int width);
std::string profile_json(const Profile& profile);

}  // namespace rooflash
