#include "measure/metric_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "measure/metric_plan.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

const char* last_parts(MetricKind kind) {
  switch (kind) {
    case MetricKind::counter:
      return ".sum, .avg, .min or .max, or one of these with .per_second, "
             ".pct_of_peak_sustained_elapsed and the like";
    case MetricKind::ratio:
      return ".ratio, .pct or .max_rate";
    case MetricKind::throughput:
      return ".avg.pct_of_peak_sustained_elapsed or the like";
  }
  return "";
}

// Why `name` is no metric of the chip, whose base names are `known`.
std::string refusal(const std::string& name, const std::string& chip,
                    const std::map<std::string, MetricKind>& known) {
  // The longest base name: some have dots in them.
  std::string base = name;
  auto found = known.find(base);
  while (found == known.end() && base.find('.') != std::string::npos) {
    base.resize(base.rfind('.'));
    found = known.find(base);
  }
  if (found != known.end()) {
    return fmt::format("{} takes {}", base, last_parts(found->second));
  }
  const std::size_t dot = std::min(name.find('.'), name.size());
  std::vector<std::string> names;
  for (const auto& [one, kind] : known) names.push_back(one + name.substr(dot));
  const std::string hint = suggest(name, names);
  return fmt::format("{} has no such metric{}", chip,
                     hint.starts_with("did you mean") ? "; " + hint : "");
}

}  // namespace

std::map<std::string, std::string> refused_metrics(const CuptiApi& api, const std::string& chip,
                                                   const std::vector<std::string>& names) {
  std::map<std::string, std::string> refused;
  std::map<std::string, MetricKind> known;
  for (const std::string& name : names) {
    if (has_metric(api, chip, name)) continue;
    if (known.empty()) known = base_metrics(api, chip);
    refused[name] = refusal(name, chip, known);
  }
  return refused;
}

}  // namespace rooflash
