#include "cli/report_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "cli/comparison.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/calibrate.hpp"
#include "history/change_points.hpp"
#include "measure/statistics.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

// "hbm_bytes +3.1%, spill_bytes 0 to 16".
std::string figures_text(const std::vector<FigureChange>& figures) {
  std::string text;
  for (const FigureChange& figure : figures) {
    if (!figure.is_worse() && !figure.is_better()) continue;
    if (!text.empty()) text += ", ";
    text += figure.base > 0
                ? fmt::format("{} {}", figure.name, percent_change(figure.candidate / figure.base))
                : fmt::format("{} 0 to {:.0f}", figure.name, figure.candidate);
  }
  return text;
}

ComparedCase compared_case(const CaseComparison& found) {
  ComparedCase one;
  one.case_id = found.case_id;
  one.device_class = found.device_class;
  one.kernel = found.kernel;
  one.problem = found.problem;
  one.verdict = to_string(found.verdict);
  one.reason = found.reason;
  one.figures = figures_text(found.figures);
  one.repro = found.repro;
  if (found.time) {
    const TimeShift& time = *found.time;
    one.base_us = time.base_median_us;
    one.new_us = time.candidate_median_us;
    one.ratio = time.shift.ratio;
    if (time.shift.ci95) {
      one.ci95_low = time.shift.ci95->low;
      one.ci95_high = time.shift.ci95->high;
    }
    one.q = time.q;
    one.threshold = time.threshold;
  }
  return one;
}

// A case with fewer points has no history worth a chart.
constexpr std::size_t kLeastPoints = 3;

std::string where_of(const SeriesKey& key) {
  return fmt::format("{}{}, {} L2, {} power",
                     key.measure == Measure::quantize_us ? "quantising, " : "", key.device_class,
                     key.l2, key.power);
}

CaseHistory case_history(const Series& series, const std::vector<ChangePoint>& changes) {
  CaseHistory one;
  one.case_id = series.key.case_id;
  one.where = where_of(series.key);
  one.kernel = series.kernel;
  one.problem = series.problem;
  one.simulated = series.simulated;
  std::vector<double> times;
  for (const SeriesPoint& point : series.points) times.push_back(point.time_us);
  double level = changes.empty() ? median(times) : changes.front().before_us;
  auto change = changes.begin();
  for (std::size_t i = 0; i < series.points.size(); ++i) {
    const SeriesPoint& from = series.points[i];
    HistoryPoint point;
    point.date = from.date;
    point.commit = from.commit + (from.dirty ? "+modified" : "");
    point.run = from.record;
    point.time_us = from.time_us;
    point.ci95_low_us = from.ci95.low;
    point.ci95_high_us = from.ci95.high;
    if (change != changes.end() && change->index == i) {
      level = change->after_us;
      point.change = change->ratio;
      ++change;
    }
    point.level_us = level;
    one.points.push_back(std::move(point));
  }
  return one;
}

double largest_change(const CaseHistory& one) {
  double largest = 0;
  for (const HistoryPoint& point : one.points) {
    if (point.change) largest = std::max(largest, std::fabs(std::log(*point.change)));
  }
  return largest;
}

// Two series whose names are the same differ in their definition, which then tells them apart.
// `definitions` is parallel to `cases`.
void tell_apart(std::vector<CaseHistory>& cases, const std::vector<std::string>& definitions) {
  std::map<std::pair<std::string, std::string>, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    places[{cases[i].case_id, cases[i].where}].push_back(i);
  }
  for (const auto& [name, same] : places) {
    if (same.size() < 2) continue;
    for (const std::size_t i : same) cases[i].where += ", definition " + definitions[i];
  }
}

}  // namespace

RecordComparison report_comparison(const Comparison& comparison, std::string base_name,
                                   std::string new_name) {
  RecordComparison result;
  result.base_name = std::move(base_name);
  result.new_name = std::move(new_name);
  result.counts = verdict_counts(comparison);
  result.differences = comparison.differences;
  if (const auto mean = geomean_ratio(comparison)) {
    result.geomean = mean->ratio;
    result.geomean_cases = mean->cases;
  }
  for (const CaseComparison& found : comparison.cases) {
    result.cases.push_back(compared_case(found));
  }
  return result;
}

std::vector<ReportRun> runs_to_report(std::span<const Record> records,
                                      const std::vector<std::string>& names) {
  std::vector<ReportRun> runs = report_runs(records);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (i < names.size() && !names[i].empty()) runs[i].name = names[i];
    for (DetectableChange& found : detectable_changes(records[i])) {
      runs[i].detectable.push_back({found.change, std::move(found.reason)});
    }
  }
  return runs;
}

TimeHistory report_history(std::span<const ReportRun> runs) {
  TimeHistory history;
  history.threshold = kChangeThreshold;
  SeriesBuilder builder;
  try {
    for (const ReportRun& run : runs) builder.add(*run.record, run.name);
  } catch (const UsageError& error) {
    history.fault = fmt::format("No history: {}.", error.what());
    return history;
  }
  std::vector<std::string> definitions;
  for (const Series& series : builder.take()) {
    if (series.points.size() < kLeastPoints) continue;
    const std::vector<ChangePoint> changes = change_points(series, kChangeThreshold);
    history.changes += static_cast<int>(changes.size());
    history.too_short += can_change(series) ? 0 : 1;
    history.cases.push_back(case_history(series, changes));
    definitions.push_back(fmt::format("{}, {}", series.key.definition_hash, series.key.convention));
  }
  tell_apart(history.cases, definitions);
  std::stable_sort(history.cases.begin(), history.cases.end(),
                   [](const CaseHistory& a, const CaseHistory& b) {
                     return largest_change(a) > largest_change(b);
                   });
  return history;
}

std::string noise_sentence(const Record& record) {
  int rounds = 0;
  for (const Row& row : record.rows) {
    if (!row.simulated) rounds = std::max(rounds, row.round + 1);
  }
  if (rounds < 2) return {};
  std::map<std::string, double> found;  // by case
  std::string reason;
  const std::vector<DetectableChange> changes = detectable_changes(record);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const Row& row = record.rows[i];
    if (changes[i].change) {
      found[row.case_id + " on " + row.device] = *changes[i].change;
    } else if (!row.simulated && row.time_us) {
      reason = changes[i].reason;
    }
  }
  if (found.empty()) {
    return reason.empty() ? ""
                          : "the least change that a comparison would find is unknown: " + reason;
  }
  std::vector<double> values;
  for (const auto& [name, change] : found) values.push_back(change);
  const auto worst = std::max_element(
      found.begin(), found.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return fmt::format(
      "between two such records of {} rounds, 9 of 10 comparisons find a change of {} % in the "
      "middle "
      "case, and of {} % in the noisiest ({})",
      rounds, significant(median(values) * 100), significant(worst->second * 100), worst->first);
}

}  // namespace rooflash
