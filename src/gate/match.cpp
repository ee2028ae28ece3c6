#include "gate/match.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/units.hpp"

namespace rooflash {
namespace {

const DeviceInfo* device_of(const Record& record, const std::string& device) {
  for (const DeviceInfo& info : record.environment.devices) {
    if (info.device == device) return &info;
  }
  return nullptr;
}

struct Sides {
  Rows base;
  Rows candidate;
};
using Classes = std::map<std::string, Sides>;

Match matched(const std::string& case_id, const std::string& device, const Sides& sides) {
  return {case_id, sides.base.empty() ? "" : device, sides.candidate.empty() ? "" : device,
          sides.base, sides.candidate};
}

void add_matches(std::vector<Match>& matches, const std::string& case_id, const Classes& classes) {
  std::vector<Match> gone;
  std::vector<Match> fresh;
  for (const auto& [device, sides] : classes) {
    const bool both = !sides.base.empty() && !sides.candidate.empty();
    (both                      ? matches
     : sides.candidate.empty() ? gone
                               : fresh)
        .push_back(matched(case_id, device, sides));
  }
  const std::size_t pairs = std::min(gone.size(), fresh.size());
  for (std::size_t i = 0; i < pairs; ++i) {
    gone[i].candidate_class = fresh[i].candidate_class;
    gone[i].candidate = fresh[i].candidate;
  }
  matches.insert(matches.end(), gone.begin(), gone.end());
  matches.insert(matches.end(), fresh.begin() + static_cast<std::ptrdiff_t>(pairs), fresh.end());
}

// One figure of all devices, "700 W, 700 W"; devices without it are left out.
std::string of_devices(const Record& record, std::string (*figure)(const DeviceInfo&)) {
  std::string text;
  for (const DeviceInfo& device : record.environment.devices) {
    const std::string one = figure(device);
    if (!one.empty()) text += (text.empty() ? "" : ", ") + one;
  }
  return text;
}

std::string power_limit(const DeviceInfo& device) {
  return device.power_limit_w ? fmt::format("{:.0f} W", *device.power_limit_w) : "";
}

std::string ecc(const DeviceInfo& device) {
  return !device.ecc ? "" : *device.ecc ? "on" : "off";
}

std::string card(const DeviceInfo& device) {
  return device.uuid_hash;
}

std::string model(const DeviceInfo& device) {
  return device.name;
}

std::string sm_count(const DeviceInfo& device) {
  return device.sm_count ? fmt::format("{}", *device.sm_count) : "";
}

std::string mig(const DeviceInfo& device) {
  return !device.mig ? "" : *device.mig ? "on" : "off";
}

std::string memory(const DeviceInfo& device) {
  return device.memory_bytes ? format_gib(static_cast<double>(*device.memory_bytes)) : "";
}

// Of the first device whose roofs were measured.
OptDouble measured_hbm_gbps(const Record& record) {
  for (const Ceilings& ceilings : record.ceilings) {
    if (ceilings.source == "measured" && ceilings.hbm_copy_gbps) return ceilings.hbm_copy_gbps;
  }
  return std::nullopt;
}

}  // namespace

std::string device_class(const DeviceInfo& device) {
  std::string text = device.name.empty() ? "unnamed GPU" : device.name;
  if (device.sm_count) text += fmt::format(", {} SMs", *device.sm_count);
  if (device.mig.value_or(false)) text += ", MIG";
  return device.simulated ? text + ", simulated" : text;
}

std::string device_class(const Record& record, const Row& row) {
  const DeviceInfo* known = device_of(record, row.device);
  DeviceInfo device = known == nullptr ? DeviceInfo{} : *known;
  device.name = row.gpu;
  device.simulated = row.simulated;
  return device_class(device);
}

std::vector<Match> match_rows(const Record& base, const Record& candidate) {
  std::map<std::string, Classes> cases;
  for (const Row& row : base.rows) {
    cases[row.case_id][device_class(base, row)].base.push_back(&row);
  }
  for (const Row& row : candidate.rows) {
    cases[row.case_id][device_class(candidate, row)].candidate.push_back(&row);
  }
  std::vector<Match> matches;
  for (const auto& [case_id, classes] : cases) add_matches(matches, case_id, classes);
  return matches;
}

std::vector<std::string> environment_differences(const Record& base, const Record& candidate) {
  std::vector<std::string> differences;
  const auto compare = [&](std::string_view name, std::string_view a, std::string_view b) {
    if (a == b) return;
    differences.push_back(fmt::format("{}: base {}, new {}", name, a.empty() ? "unknown" : a,
                                      b.empty() ? "unknown" : b));
  };
  compare("GPU", of_devices(base, model), of_devices(candidate, model));
  compare("SMs", of_devices(base, sm_count), of_devices(candidate, sm_count));
  compare("MIG", of_devices(base, mig), of_devices(candidate, mig));
  compare("GPU memory", of_devices(base, memory), of_devices(candidate, memory));
  compare("driver", base.environment.driver, candidate.environment.driver);
  compare("CUDA", base.environment.cuda, candidate.environment.cuda);
  compare("build", base.tool.build, candidate.tool.build);
  compare("seed", std::to_string(base.seed), std::to_string(candidate.seed));
  compare("power limit", of_devices(base, power_limit), of_devices(candidate, power_limit));
  compare("ECC", of_devices(base, ecc), of_devices(candidate, ecc));
  compare("card", of_devices(base, card), of_devices(candidate, card));
  // Foreign load, or a card that is not what it was.
  constexpr double kSameRate = 0.03;
  const OptDouble before = measured_hbm_gbps(base);
  const OptDouble after = measured_hbm_gbps(candidate);
  if (before && after && std::fabs(*after / *before - 1) > kSameRate) {
    differences.push_back(
        fmt::format("measured HBM rate: base {:.0f} GB/s, new {:.0f} GB/s", *before, *after));
  }
  if (!base.complete) differences.emplace_back("the base record is of an interrupted run");
  if (!candidate.complete) differences.emplace_back("the new record is of an interrupted run");
  return differences;
}

}  // namespace rooflash
