// Writes reports of made-up records for the browser test, or one as CSV.
//   make_report KIND FILE
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

#include "../unit/report/fixture.hpp"
#include "report/formats.hpp"
#include "report/html.hpp"

namespace {

using namespace rooflash;

// What a gate would say of two rounds of one sweep, every verdict among it.
RecordComparison made_up_comparison(const Record& record) {
  RecordComparison comparison;
  comparison.base_name = "run 1";
  comparison.new_name = "run 2";
  comparison.counts = "4 slower, 4 faster, 8 unsure, 32 same";
  comparison.geomean = 1.004;
  comparison.geomean_cases = 48;
  comparison.differences = {"driver: base 580.00, new 581.00"};
  int i = 0;
  for (const Row& row : record.rows) {
    if (row.status != Status::ok || row.simulated) continue;
    ComparedCase one;
    one.case_id = row.case_id;
    one.device_class = row.gpu + ", 132 SMs";
    one.kernel = row.kernel;
    one.problem = row.problem;
    const double shift = ++i % 12 == 0 ? 0.08 : i % 12 == 5 ? -0.06 : 0.004 * std::sin(i);
    const bool unsure = i % 6 == 3;
    one.verdict = unsure ? "unsure" : shift > 0.05 ? "slower" : shift < -0.05 ? "faster" : "same";
    if (unsure) one.reason = "the interval spans the threshold";
    one.base_us = row.time_us->median;
    one.new_us = row.time_us->median * (1 + shift);
    one.ratio = 1 + shift;
    const double half = unsure ? 0.04 : 0.008;
    one.ci95_low = 1 + shift - half;
    one.ci95_high = 1 + shift + half;
    one.threshold = 0.03;
    comparison.cases.push_back(std::move(one));
  }
  return comparison;
}

// Some of the rows have a least change that is found, the others a reason.
void add_detectable(ReportRun& run) {
  for (std::size_t i = 0; i < run.record->rows.size(); ++i) {
    run.detectable.push_back(i % 3 == 0 ? Detectable{0.004 * static_cast<double>(i % 7 + 1), {}}
                                        : Detectable{{}, "needs 5 rounds, has <1>"});
  }
}

// Twelve nights of every measured case: every fifth became slower at the sixth night and faster
// again at the tenth.
TimeHistory made_up_history(const Record& record) {
  TimeHistory history;
  history.threshold = 0.02;
  int i = 0;
  for (const Row& row : record.rows) {
    if (row.status != Status::ok || row.simulated) continue;
    CaseHistory one;
    one.case_id = row.case_id;
    one.where = row.gpu + ", 132 SMs, cold L2, burst power";
    one.kernel = row.kernel;
    one.problem = row.problem;
    const bool changes = i++ % 5 == 0;
    for (int night = 0; night < 12; ++night) {
      const double level = row.time_us->median * (changes && night >= 5 && night < 9 ? 1.08 : 1);
      HistoryPoint point;
      point.date = "2026-01-" + std::to_string(night + 10) + "T02:00:00Z";
      point.commit = "abc" + std::to_string(night);
      point.run = "night " + std::to_string(night);
      point.time_us = level * (1 + 0.003 * std::sin(7.0 * night));
      point.ci95_low_us = point.time_us * 0.996;
      point.ci95_high_us = point.time_us * 1.003;
      point.level_us = level;
      if (changes && (night == 5 || night == 9)) {
        point.change = night == 5 ? 1.08 : 1 / 1.08;
        ++history.changes;
      }
      one.points.push_back(point);
    }
    history.cases.push_back(std::move(one));
  }
  return history;
}

// Decode at one query and prefill at 64k: intensities at both ends of the chart.
Record extreme_record() {
  Record record = fixture::empty_record();
  Problem decode = fixture::problem(DType::bf16, 128, 8192, false);
  decode.seqlen_q = 1;
  record.rows.push_back(fixture::row("fa2", decode, 0.02, 40, false));
  Problem prefill = fixture::problem(DType::bf16, 128, 16384, false);
  prefill.batch = 1;
  prefill.seqlen_q = prefill.seqlen_kv = 1 << 20;
  record.rows.push_back(fixture::row("fa2", prefill, 600, 1, false));
  return record;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: make_report KIND FILE\n";
    return 2;
  }
  const std::string kind = argv[1];
  std::vector<Record> records;
  HtmlOptions options;
  if (kind == "sweep" || kind == "two" || kind == "csv") {
    records.push_back(fixture::sweep_record(true));
  }
  if (kind == "two") {
    records.push_back(fixture::sweep_record(false));
    options.comparisons.push_back(made_up_comparison(records.front()));
  }
  if (kind == "history") {
    records.push_back(fixture::sweep_record(false));
    options.history = made_up_history(records.front());
  }
  if (kind == "many" || kind == "thinned") records.push_back(fixture::large_record(2000));
  if (kind == "thinned") options.max_points = 50;
  if (kind == "parts") {
    records.push_back(fixture::sweep_record(true));
    options.sections = {"roofline", "noise"};
  }
  if (kind == "showcase") records.push_back(fixture::showcase_record());
  if (kind == "extreme") records.push_back(extreme_record());
  if (kind == "hostile") records.push_back(fixture::hostile_record());
  if (kind == "long") records.push_back(fixture::long_names_record(5000));
  if (kind == "huge") records.push_back(fixture::long_names_record(1'000'000));
  if (kind == "large") records.push_back(fixture::large_record(10'000));
  if (records.empty()) {
    std::cerr << "make_report: unknown kind " << kind << "\n";
    return 2;
  }
  std::ofstream out(argv[2], std::ios::binary);
  std::vector<ReportRun> runs = report_runs(records);
  for (ReportRun& run : runs) add_detectable(run);
  out << (kind == "csv" ? render_csv(records.front()) : html_report(runs, options));
  return out.flush() ? 0 : 1;
}
