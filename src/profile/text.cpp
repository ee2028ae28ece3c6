// A profile for the terminal.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "profile/profile.hpp"

namespace rooflash {
namespace {

// `text` broken at spaces into lines of `width`; all but the first are indented.
std::string wrapped(std::string_view text, std::size_t indent, int width) {
  std::string result;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t space = std::min(text.find_first_not_of(' '), text.size());
    const std::size_t end = std::min(text.find(' ', space), text.size());
    if (column > indent && column + end > static_cast<std::size_t>(width)) {
      result += '\n' + std::string(indent, ' ') + std::string(text.substr(space, end - space));
      column = indent + end - space;
    } else {
      result += text.substr(0, end);
      column += end;
    }
    text.remove_prefix(end);
  }
  return result + '\n';
}

std::string value_text(const MeasuredMetric& one) {
  if (!one.value) return "n/a";
  const double value = *one.value;
  const std::string& unit = one.metric.unit;
  if (unit == "ns") return format_time_us(value / 1e3);
  if (unit == "Hz") return fmt::format("{:.0f} MHz", value / 1e6);
  if (unit == "bytes") return format_gib(value);
  if (unit == "%") return fmt::format("{:.1f} %", value);
  // Counts stay whole as long as they can be read.
  const bool whole = value == std::floor(value) && std::fabs(value) < 1e6;
  const std::string number = whole ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
  return unit.empty() ? number : number + " " + unit;
}

std::string count(OptInt value) {
  return value ? fmt::format("{}", *value) : "n/a";
}

std::string head(const Profile& profile, int width) {
  const Row& row = profile.row;
  const Resources& used = row.resources;
  std::string text =
      wrapped(fmt::format("{}  [{}]  {} ({})  {} L2  verify {}", printable(row.case_id),
                          printable(row.device), printable(row.gpu),
                          profile.chip.empty() ? "chip unknown" : printable(profile.chip),
                          profile.l2, row.verify.status),
              2, width);
  std::vector<std::string> kernels;
  for (const std::string& name : row.kernels_run) kernels.push_back(printable(name));
  if (!kernels.empty()) {
    text += wrapped(fmt::format("counted     {}", fmt::join(kernels, ", ")), 12, width);
  }
  if (used.grid) {
    text += wrapped(
        fmt::format(
            "launch      {} blocks of {} threads{}; {} registers a thread, {} bytes spilled; {} "
            "of shared memory a block",
            count(used.grid), count(used.threads),
            used.waves ? fmt::format(", {:.2f} waves", *used.waves) : "", count(used.registers),
            count(used.spill_bytes),
            used.smem_bytes ? format_gib(static_cast<double>(*used.smem_bytes)) : "n/a"),
        12, width);
  }
  if (profile.occupancy) {
    const Occupancy& most = *profile.occupancy;
    const OptDouble achieved = figure(profile, "compute", "occupancy_pct");
    text +=
        wrapped(fmt::format("occupancy   {:.0f} % theoretical: {} block{} an SM, limited by {}{}",
                            most.pct, most.blocks, most.blocks == 1 ? "" : "s", most.limiter,
                            achieved ? fmt::format("; {:.0f} % achieved", *achieved) : ""),
                12, width);
  }
  return text;
}

std::string set_table(const MeasuredSet& set) {
  std::string text =
      fmt::format("\n{}  {} pass{}\n", set.name, set.passes, set.passes == 1 ? "" : "es");
  std::size_t id_width = 0;
  std::size_t value_width = 0;
  for (const MeasuredMetric& one : set.metrics) {
    id_width = std::max(id_width, one.metric.id.size());
    value_width = std::max(value_width, value_text(one).size());
  }
  std::vector<std::string> reasons;
  for (const MeasuredMetric& one : set.metrics) {
    std::string line =
        fmt::format("  {:<{}}  {:>{}}", one.metric.id, id_width, value_text(one), value_width);
    if (one.metric.id != one.metric.name) line += "  " + one.metric.name;
    if (!one.value) {
      const auto known = std::find(reasons.begin(), reasons.end(), one.missing);
      if (known == reasons.end()) reasons.push_back(one.missing);
    }
    text += line + '\n';
  }
  for (const std::string& reason : reasons) {
    text += fmt::format("  n/a: {}\n", printable(reason, 600));
  }
  return text;
}

std::string findings_text(const Profile& profile, int width) {
  std::string text = "\nfindings\n";
  std::size_t number = 0;
  for (const Finding& finding : profile.findings) {
    text += wrapped(fmt::format("  {}. {}", ++number, finding.what), 5, width);
    text += wrapped("     evidence  " + finding.evidence, 15, width);
    if (finding.gain_pct) {
      text += wrapped(fmt::format("     gain      at most {:.0f} % of the time: {}",
                                  *finding.gain_pct, finding.formula),
                      15, width);
    }
    text += wrapped("     next      " + finding.next_step, 15, width);
  }
  if (profile.findings.empty()) text += "  none: no rule applies to what was counted\n";
  return text;
}

}  // namespace

std::string profile_text(const Profile& profile, int width) {
  std::string text = head(profile, width);
  if (profile.row.status != Status::ok) {
    return text + wrapped(fmt::format("{}: {}", to_string(profile.row.status),
                                      printable(profile.row.reason, 1000)),
                          2, width);
  }
  bool counted = false;
  for (const MeasuredSet& set : profile.sets) {
    text += set_table(set);
    for (const MeasuredMetric& one : set.metrics) counted = counted || one.value.has_value();
  }
  return counted ? text + findings_text(profile, width) : text;
}

}  // namespace rooflash
