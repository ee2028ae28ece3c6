#include "report/row_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/units.hpp"
#include "report/escape.hpp"
#include "report/pivot.hpp"
#include "report/row_cells.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

using Cells = std::vector<DataCell>;
using Fill = std::function<void(Cells&, const Row&, const ReportRun&)>;
using Runs = std::span<const ReportRun>;

std::string device_text(const Row& row, Runs runs, std::size_t run) {
  std::string text = row.device;
  if (row.simulated) text += " (simulated)";
  if (row.round) text += fmt::format(" round {}", row.round);
  if (runs.size() > 1) text += " " + runs[run].name;
  return text;
}

OptDouble of_time(const Row& row, double TimeUs::*member) {
  if (!row.time_us) return std::nullopt;
  return (*row.time_us).*member;
}

OptDouble real(OptInt value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

DataCell detectable_cell(const Detectable& found) {
  if (!found.change) return text_cell("n/a: " + found.reason);
  return {significant(*found.change * 100, 3) + " %", found.change};
}

bool is_ok(const Row& row) {
  return row.status == Status::ok;
}

// The rows that `wanted` takes, in the runs' order: case, device, then what `fill` adds.
void add_rows(DataTable& table, Runs runs, std::size_t limit,
              const std::function<bool(const Row&)>& wanted, const Fill& fill) {
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::vector<Row>& rows = runs[i].record->rows;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const Row& row = rows[j];
      if (!wanted(row)) continue;
      ++table.total;
      if (table.rows.size() >= limit) continue;
      DataRow data{fmt::format("{}:{}", i, j), "", row_anchor(row, i), {}};
      data.cells.push_back(text_cell(row.case_id));
      data.cells.push_back(text_cell(device_text(row, runs, i)));
      fill(data.cells, row, runs[i]);
      table.rows.push_back(std::move(data));
    }
  }
}

// Ranked times of one record by device, problem and round; kernel to row.
using Rivals = std::map<std::string, std::map<std::string, const Row*>>;

std::string rival_key(const Row& row) {
  return fmt::format("{}\n{}\n{}", row.device, case_id("", row.problem), row.round);
}

}  // namespace

std::string row_anchor(const Row& row, std::size_t record_index) {
  std::string text = "case-" + shortened(row.case_id) + "@" + shortened(row.device);
  if (row.round) text += fmt::format(".r{}", row.round);
  if (record_index) text += fmt::format(".run{}", record_index + 1);
  return escape_anchor(text);
}

DataTable roofline_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-roofline",
                  "Points of the roofline",
                  {"case", "device", "FLOP/byte", "compulsory FLOP/byte", "TFLOPS", "% of roof",
                   "side", "roofs"}};
  add_rows(table, runs, limit, is_ok, [](Cells& cells, const Row& row, const ReportRun& run) {
    const Roofs roofs = roofs_of(*run.record, row.device, row.gpu, row.problem.dtype);
    const OptDouble x = intensity(row);
    DataCell measured = value_cell(row, "derived.intensity_flop_per_byte", x);
    if (x && hbm_bytes(row).predicted) measured.text += " (predicted)";
    cells.push_back(std::move(measured));
    cells.push_back(value_cell(row, "model.compulsory_bytes", compulsory_intensity(row)));
    cells.push_back(value_cell(row, "derived.tflops", row.derived.tflops));
    cells.push_back(value_cell(row, "derived.roof_pct", row.derived.roof_pct, " %"));
    const char side = roof_side(roofs, x);
    cells.push_back(text_cell(side == 'c' ? "compute" : side == 'm' ? "memory" : "n/a"));
    cells.push_back(text_cell(roof_text(roofs)));
  });
  return table;
}

DataTable throughput_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{
      "table-throughput",
      "Median time and throughput",
      {"case", "device", "seqlen", "time", "95 % interval", "n", "TFLOPS", "hardware TFLOPS"}};
  add_rows(table, runs, limit, is_ok, [](Cells& cells, const Row& row, const ReportRun&) {
    cells.push_back(
        {fmt::format("{}", row.problem.seqlen_kv), static_cast<double>(row.problem.seqlen_kv)});
    cells.push_back(time_cell(row, "time_us", of_time(row, &TimeUs::median)));
    if (row.time_us) {
      cells.push_back(text_cell(fmt::format("{} to {}", format_time_us(row.time_us->ci95_low),
                                            format_time_us(row.time_us->ci95_high))));
      cells.push_back({fmt::format("{}", row.time_us->n), static_cast<double>(row.time_us->n)});
    } else {
      cells.push_back(missing_cell(row, "time_us"));
      cells.push_back(missing_cell(row, "time_us"));
    }
    cells.push_back(value_cell(row, "derived.tflops", row.derived.tflops));
    cells.push_back(value_cell(row, "derived.hardware_tflops", row.derived.hardware_tflops));
  });
  return table;
}

DataTable speedup_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-speedup",
                  "Time against the baseline kernel on the same problem and device",
                  {"case", "device", "time", "baseline", "baseline time", "speed-up"}};
  std::map<const Record*, std::pair<std::string, Rivals>> of_record;
  for (const ReportRun& run : runs) {
    auto& [baseline, rivals] = of_record[run.record];
    const Pivot grid = pivot(*run.record);
    if (!grid.kernels.empty()) baseline = grid.kernels.front();
    for (const Row& row : run.record->rows) {
      if (is_ranked(row)) rivals[rival_key(row)][kernel_label(row)] = &row;
    }
  }
  add_rows(table, runs, limit, is_ranked, [&](Cells& cells, const Row& row, const ReportRun& run) {
    const auto& [baseline, rivals] = of_record.at(run.record);
    cells.push_back(time_cell(row, "time_us", row.time_us->median));
    cells.push_back(text_cell(baseline));
    const auto& others = rivals.at(rival_key(row));
    const auto base = others.find(baseline);
    if (base == others.end()) {
      cells.push_back(text_cell("n/a: no time of the baseline"));
      cells.push_back(text_cell("n/a: no time of the baseline"));
      return;
    }
    const double base_us = base->second->time_us->median;
    const double speedup = base_us / row.time_us->median;
    cells.push_back({format_time_us(base_us), base_us});
    cells.push_back({significant(speedup, 4) + "x", speedup});
  });
  return table;
}

DataTable bytes_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-bytes",
                  "Bytes moved",
                  {"case", "device", "compulsory", "HBM read", "HBM written", "HBM / compulsory",
                   "HBM rate", "SM to L2 read", "predicted HBM"}};
  add_rows(table, runs, limit, is_ok, [](Cells& cells, const Row& row, const ReportRun&) {
    const Counters& counters = row.counters;
    cells.push_back(
        bytes_cell(row, "model.compulsory_bytes", static_cast<double>(row.model.compulsory_bytes)));
    cells.push_back(bytes_cell(row, "counters.hbm_read_bytes", counters.hbm_read_bytes));
    cells.push_back(bytes_cell(row, "counters.hbm_write_bytes", counters.hbm_write_bytes));
    DataCell ratio = value_cell(row, "counters.hbm_read_bytes", bytes_over_compulsory(row), "x");
    if (ratio.sort && hbm_bytes(row).predicted) ratio.text += " (predicted)";
    cells.push_back(std::move(ratio));
    cells.push_back(value_cell(row, "derived.hbm_gbps", row.derived.hbm_gbps, " GB/s"));
    cells.push_back(bytes_cell(row, "counters.sm_l2_read_bytes", counters.sm_l2_read_bytes));
    cells.push_back(bytes_cell(row, "model.predicted_hbm_bytes", row.model.predicted_hbm_bytes));
  });
  return table;
}

DataTable memory_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-memory",
                  "Device memory that a case needs",
                  {"case", "device", "seqlen", "status", "workspace", "peak", "needed", "free"}};
  const auto wanted = [](const Row& row) { return is_ok(row) || row.status == Status::oom; };
  add_rows(table, runs, limit, wanted, [](Cells& cells, const Row& row, const ReportRun&) {
    const Memory& memory = row.memory;
    cells.push_back(
        {fmt::format("{}", row.problem.seqlen_kv), static_cast<double>(row.problem.seqlen_kv)});
    cells.push_back(text_cell(std::string(to_string(row.status))));
    cells.push_back(bytes_cell(row, "memory.workspace_bytes", real(memory.workspace_bytes)));
    cells.push_back(bytes_cell(row, "memory.peak_bytes", real(memory.peak_bytes)));
    if (is_ok(row)) {
      cells.push_back(text_cell("fits"));
      cells.push_back(text_cell("fits"));
      return;
    }
    cells.push_back(bytes_cell(row, "memory.needed_bytes", real(memory.needed_bytes)));
    cells.push_back(bytes_cell(row, "memory.free_bytes", real(memory.free_bytes)));
  });
  return table;
}

DataTable accuracy_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-accuracy",
                  "Error against the fp64 reference, and throughput",
                  {"case", "device", "verified", "relative error", "rms error", "max error",
                   "max error allowed", "max error / allowed", "TFLOPS"}};
  add_rows(table, runs, limit, is_ok, [](Cells& cells, const Row& row, const ReportRun&) {
    const VerifyResult& verify = row.verify;
    std::string checked = verify.status;
    if (!verify.shape.empty()) checked += " at " + verify.shape;
    cells.push_back(text_cell(std::move(checked)));
    cells.push_back(value_cell(row, "verify.rel_err", verify.rel_err));
    cells.push_back(value_cell(row, "verify.rms_err", verify.rms_err));
    cells.push_back(value_cell(row, "verify.max_abs_err", verify.max_abs_err));
    cells.push_back(value_cell(row, "verify.tolerance_max", verify.tolerance_max));
    cells.push_back(value_cell(row, "verify.tolerance_max",
                               quotient(verify.max_abs_err, verify.tolerance_max)));
    cells.push_back(value_cell(row, "derived.tflops", row.derived.tflops));
  });
  return table;
}

DataTable noise_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{
      "table-noise",
      "Spread of the samples, and the state of the card",
      {"case", "device", "n", "time", "half width of the interval", "least change found",
       "fastest sample", "SM clock", "SM clock range", "power", "temperature", "L2", "flags"}};
  add_rows(table, runs, limit, is_ok, [](Cells& cells, const Row& row, const ReportRun& run) {
    if (!row.time_us) {
      for (int i = 0; i < 5; ++i) cells.push_back(missing_cell(row, "time_us"));
    } else {
      const TimeUs& time = *row.time_us;
      cells.push_back({fmt::format("{}", time.n), static_cast<double>(time.n)});
      cells.push_back({format_time_us(time.median), time.median});
      cells.push_back(value_cell(
          row, "time_us", quotient(50 * (time.ci95_high - time.ci95_low), OptDouble(time.median)),
          " %"));
      cells.push_back(detectable_cell(run.detectable_of(row)));
      cells.push_back({format_time_us(time.min), time.min});
    }
    const Clock clock = row.clock_mhz.value_or(Clock{});
    cells.push_back(value_cell(row, "clock_mhz", clock.median, " MHz"));
    cells.push_back(clock.min && clock.max
                        ? text_cell(fmt::format("{} to {} MHz", significant(*clock.min, 4),
                                                significant(*clock.max, 4)))
                        : missing_cell(row, "clock_mhz"));
    cells.push_back(value_cell(row, "power_w", row.power_w, " W"));
    cells.push_back(value_cell(row, "temperature_c", row.temperature_c, " C"));
    cells.push_back(row.time_us ? text_cell(row.time_us->l2) : missing_cell(row, "time_us"));
    cells.push_back(text_cell(flags_text(row)));
  });
  return table;
}

DataTable model_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-model",
                  "What the model predicts of the rows that were measured",
                  {"case", "device", "time", "predicted time", "predicted / measured", "HBM",
                   "predicted HBM", "predicted / counted"}};
  const auto wanted = [](const Row& row) { return is_ok(row) && !row.simulated; };
  add_rows(table, runs, limit, wanted, [](Cells& cells, const Row& row, const ReportRun&) {
    const OptDouble time = of_time(row, &TimeUs::median);
    const OptDouble bytes = hbm_bytes(row).bytes;
    const ModelFigures& model = row.model;
    cells.push_back(time_cell(row, "time_us", time));
    cells.push_back(time_cell(row, "model.predicted_time_us", model.predicted_time_us));
    cells.push_back(
        value_cell(row, "model.predicted_time_us", quotient(model.predicted_time_us, time)));
    cells.push_back(bytes_cell(row, "counters.hbm_read_bytes", bytes));
    cells.push_back(bytes_cell(row, "model.predicted_hbm_bytes", model.predicted_hbm_bytes));
    cells.push_back(
        value_cell(row, "counters.hbm_read_bytes", quotient(model.predicted_hbm_bytes, bytes)));
  });
  return table;
}

DataTable not_ok_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-not-ok",
                  "Rows that are not ok: never plotted, never ranked",
                  {"case", "device", "status", "reason"}};
  add_rows(table, runs, limit, std::not_fn(is_ok),
           [](Cells& cells, const Row& row, const ReportRun&) {
             cells.push_back(text_cell(std::string(to_string(row.status))));
             cells.push_back(text_cell(reason_text(row)));
           });
  return table;
}

DataTable detail_table(std::span<const ReportRun> runs, std::size_t limit) {
  DataTable table{"table-detail",
                  "Every row of the record",
                  {"case", "device", "status", "verified", "time", "model FLOPs", "resources",
                   "flags", "reproduce"},
                  false};
  const auto any = [](const Row&) { return true; };
  add_rows(table, runs, limit, any, [](Cells& cells, const Row& row, const ReportRun&) {
    cells.push_back(text_cell(std::string(to_string(row.status))));
    cells.push_back(text_cell(verify_text(row.verify)));
    cells.push_back(time_cell(row, "time_us", of_time(row, &TimeUs::median)));
    cells.push_back({flops_text(row), row.model.flops});
    cells.push_back(text_cell(resources_text(row)));
    cells.push_back(text_cell(flags_text(row)));
    cells.push_back(text_cell(row.repro));
  });
  return table;
}

}  // namespace rooflash
