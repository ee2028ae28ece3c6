#include "profile/profile.hpp"

#include <utility>

namespace rooflash {

Profile make_profile(const std::vector<MetricSet>& sets, CountedProfile counted) {
  Profile profile;
  std::size_t index = 0;
  for (const MetricSet& set : sets) {
    MeasuredSet measured{set.name, 0, {}};
    for (const MetricGroup& group : set.groups) {
      // No groups at all: the case itself did not run.
      const CountedGroup found =
          index < counted.groups.size() ? counted.groups[index] : CountedGroup{};
      ++index;
      measured.passes += found.passes;
      for (const Metric& metric : group) {
        MeasuredMetric one{metric, {}, ""};
        const auto value = found.values.find(metric.name);
        const auto missing = found.missing.find(metric.name);
        if (value != found.values.end()) {
          one.value = value->second;
        } else if (missing != found.missing.end()) {
          one.missing = missing->second;
        } else {
          one.missing = found.reason.empty() ? found.status : found.status + ": " + found.reason;
        }
        measured.metrics.push_back(std::move(one));
      }
    }
    profile.sets.push_back(std::move(measured));
  }
  profile.row = std::move(counted.row);
  profile.chip = std::move(counted.chip);
  profile.library = std::move(counted.library);
  profile.occupancy = theoretical_occupancy(profile.row.resources, counted.limits);
  profile.findings = find(profile);
  return profile;
}

OptDouble figure(const Profile& profile, std::string_view set, std::string_view id) {
  for (const MeasuredSet& one : profile.sets) {
    if (one.name != set) continue;
    for (const MeasuredMetric& metric : one.metrics) {
      if (metric.metric.id == id) return metric.value;
    }
  }
  return std::nullopt;
}

}  // namespace rooflash
