#include "report/summary_tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "report/pivot.hpp"
#include "report/row_cells.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

// "+6.2 %" for 1.062.
std::string change_text(double ratio) {
  const std::string text = fmt::format("{:+.1f} %", 100 * (ratio - 1));
  return text == "-0.0 %" ? "+0.0 %" : text;
}

DataCell time_cell(OptDouble time_us) {
  if (!time_us) return text_cell("n/a");
  return {format_time_us(*time_us), time_us};
}

double size_of(const ComparedCase& one) {
  return one.ratio && *one.ratio > 0 ? std::fabs(std::log(*one.ratio)) : -1;
}

}  // namespace

DataTable ranking_table(std::span<const ReportRun> runs) {
  DataTable table{"table-ranking",
                  "Geometric means over the problems that ran; wins among problems with a rival",
                  {"kernel", "device", "pass", "dtype", "TFLOPS (geomean)", "fastest in",
                   "speed-up (geomean)", "without a result"},
                  false};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Pivot grid = pivot(*runs[i].record);
    for (const Ranking& rank : rank_kernels(grid)) {
      std::string device = rank.device;
      if (runs.size() > 1) device += " " + runs[i].name;
      DataCell speedup = text_cell("reference");
      if (rank.speedup) {
        speedup = {fmt::format("{}x {} ({})", significant(*rank.speedup), rank.slowest,
                               counted(rank.common, "case")),
                   rank.speedup};
      } else if (rank.kernel != rank.slowest) {
        speedup = text_cell("n/a: no common case");
      }
      std::vector<std::string> reasons;
      int unranked = 0;
      for (const auto& [word, count] : rank.unranked) {
        reasons.push_back(fmt::format("{} {}", count, word));
        unranked += count;
      }
      table.rows.push_back(
          {"",
           rank.kernel,
           "",
           {text_cell(rank.kernel),
            text_cell(device),
            text_cell(rank.pass),
            text_cell(rank.dtype),
            {fmt::format("{} (n = {})", significant(rank.geomean_tflops), rank.ranked),
             rank.geomean_tflops},
            {fmt::format("{} of {}", rank.wins, rank.contested), static_cast<double>(rank.wins)},
            std::move(speedup),
            {reasons.empty() ? "none" : fmt::format("{}", fmt::join(reasons, ", ")),
             static_cast<double>(unranked)}}});
    }
  }
  table.total = table.rows.size();
  return table;
}

DataTable comparison_table(const RecordComparison& comparison, std::size_t index) {
  DataTable table{fmt::format("table-comparison-{}", index + 1),
                  fmt::format("{} against {}", comparison.new_name, comparison.base_name),
                  {"case", "device", "verdict", "base time", "new time", "change", "95 % interval",
                   "q", "other figures", "reason"},
                  false};
  std::vector<const ComparedCase*> cases;
  for (const ComparedCase& one : comparison.cases) cases.push_back(&one);
  std::stable_sort(cases.begin(), cases.end(), [](const ComparedCase* a, const ComparedCase* b) {
    return size_of(*a) > size_of(*b);
  });
  for (const ComparedCase* one : cases) {
    DataRow row{"", one->kernel, "", {}};
    row.cells = {text_cell(one->case_id), text_cell(one->device_class), text_cell(one->verdict),
                 time_cell(one->base_us), time_cell(one->new_us)};
    row.cells.push_back(one->ratio ? DataCell{change_text(*one->ratio), one->ratio}
                                   : text_cell("n/a"));
    row.cells.push_back(text_cell(
        one->ci95_low && one->ci95_high
            ? fmt::format("{} to {}", change_text(*one->ci95_low), change_text(*one->ci95_high))
            : std::string(one->ratio ? "n/a: too few rounds" : "n/a")));
    row.cells.push_back(one->q ? DataCell{significant(*one->q, 2), one->q} : text_cell("n/a"));
    row.cells.push_back(text_cell(one->figures.empty() ? "no change" : one->figures));
    row.cells.push_back(text_cell(one->reason));
    table.rows.push_back(std::move(row));
  }
  table.total = table.rows.size();
  return table;
}

DataTable history_table(const TimeHistory& history) {
  DataTable table{
      "table-history",
      "Times of each case, by the date of the record",
      {"case", "device", "date", "commit", "record", "time", "95 % interval", "level", "change"},
      false};
  for (const CaseHistory& one : history.cases) {
    for (const HistoryPoint& point : one.points) {
      DataRow row{"", one.kernel, "", {}};
      row.cells = {text_cell(one.case_id),  text_cell(one.where), text_cell(point.date),
                   text_cell(point.commit), text_cell(point.run), time_cell(point.time_us)};
      row.cells.push_back(text_cell(fmt::format("{} to {}", format_time_us(point.ci95_low_us),
                                                format_time_us(point.ci95_high_us))));
      row.cells.push_back(time_cell(point.level_us));
      row.cells.push_back(point.change ? DataCell{change_text(*point.change), point.change}
                                       : text_cell("none"));
      table.rows.push_back(std::move(row));
    }
  }
  table.total = table.rows.size();
  return table;
}

}  // namespace rooflash
