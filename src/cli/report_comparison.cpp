#include "cli/report_comparison.hpp"

#include <fmt/format.h>

#include "cli/comparison.hpp"

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

}  // namespace rooflash
