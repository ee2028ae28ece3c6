#include "report/summary_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "report/pivot.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

DataCell text_cell(std::string text) {
  return {std::move(text), std::nullopt};
}

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

DataTable ranking_table(std::span<const Record> records) {
  DataTable table{
      "table-ranking",
      "Geometric means over the problems that ran; wins among problems with a rival",
      {"kernel", "device", "pass", "dtype", "TFLOPS (geomean)", "fastest in", "speed-up (geomean)"},
      false};
  for (std::size_t i = 0; i < records.size(); ++i) {
    const Pivot grid = pivot(records[i]);
    for (const Ranking& rank : rank_kernels(grid)) {
      std::string device = rank.device;
      if (records.size() > 1) device += fmt::format(" run {}", i + 1);
      DataCell speedup = text_cell("reference");
      if (rank.speedup) {
        speedup = {fmt::format("{}x {} ({})", significant(*rank.speedup), rank.slowest,
                               counted(rank.common, "case")),
                   rank.speedup};
      } else if (rank.kernel != rank.slowest) {
        speedup = text_cell("n/a: no common case");
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
            std::move(speedup)}});
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
            : std::string("n/a: too few rounds")));
    row.cells.push_back(one->q ? DataCell{significant(*one->q, 2), one->q} : text_cell("n/a"));
    row.cells.push_back(text_cell(one->figures.empty() ? "no change" : one->figures));
    row.cells.push_back(text_cell(one->reason));
    table.rows.push_back(std::move(row));
  }
  table.total = table.rows.size();
  return table;
}

}  // namespace rooflash
