#include "gate/figures.hpp"

#include <algorithm>

#include "measure/statistics.hpp"

namespace rooflash {
namespace {

struct FigureRule {
  const char* name;
  Tier tier;
  OptDouble (*value)(const Row& row);
  double relative;  // increase allowed, of the base
  double floor;     // increase allowed in any case, on rows that were measured
};

OptDouble as_double(OptInt value) {
  return value ? OptDouble(static_cast<double>(*value)) : std::nullopt;
}

// Data that stayed in L2 never showed in HBM: such rows say nothing about the kernel's traffic.
OptDouble hbm_bytes(const Row& row) {
  if (row.simulated) return row.model.predicted_hbm_bytes;
  for (const std::string& flag : row.flags) {
    if (flag == "l2_resident" || flag == "output_in_l2") return std::nullopt;
  }
  if (!row.counters.hbm_read_bytes || !row.counters.hbm_write_bytes) return std::nullopt;
  return *row.counters.hbm_read_bytes + *row.counters.hbm_write_bytes;
}

// The hardware hands out registers by eights a thread and shared memory by 128 bytes; less than
// that changes nothing. Code may grow a little with every compiler. HBM bytes hold a little traffic
// of others.
constexpr double kMiB = 1 << 20;
const FigureRule kRules[] = {
    {"registers", Tier::resources,
     [](const Row& row) { return as_double(row.resources.registers); }, 0, 7},
    {"spill_bytes", Tier::resources,
     [](const Row& row) { return as_double(row.resources.spill_bytes); }, 0, 0},
    {"smem_bytes", Tier::resources,
     [](const Row& row) { return as_double(row.resources.smem_bytes); }, 0, 127},
    {"code_bytes", Tier::resources,
     [](const Row& row) { return as_double(row.resources.code_bytes); }, 0.05, 0},
    {"hbm_bytes", Tier::counters, hbm_bytes, 0.01, kMiB},
    {"tensor_ops", Tier::counters, [](const Row& row) { return row.counters.tensor_ops; }, 0.01, 0},
};

OptDouble median_of(const Rows& rows, const FigureRule& rule) {
  std::vector<double> values;
  for (const Row* row : rows) {
    if (const OptDouble value = rule.value(*row)) values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return median(values);
}

}  // namespace

std::vector<FigureChange> figure_changes(Tier tier, const Match& match,
                                         const FigureLimits& limits) {
  std::vector<FigureChange> changes;
  const bool simulated = match.base.front()->simulated;
  for (const FigureRule& rule : kRules) {
    if (rule.tier != tier) continue;
    const auto limit = limits.find(rule.name);
    if (limit != limits.end() && !limit->second) continue;
    const double relative = limit == limits.end() ? rule.relative : *limit->second;
    const OptDouble base = median_of(match.base, rule);
    const OptDouble candidate = median_of(match.candidate, rule);
    if (!base || !candidate) continue;
    const double allowed = std::max(relative * *base, simulated ? 0.0 : rule.floor);
    changes.push_back({rule.name, *base, *candidate, allowed});
  }
  return changes;
}

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const FigureRule& rule : kRules) names.emplace_back(rule.name);
  return names;
}

}  // namespace rooflash
