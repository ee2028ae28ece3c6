#include "report/row_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "core/units.hpp"
#include "report/escape.hpp"
#include "report/pivot.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

using Cells = std::vector<DataCell>;
using Fill = std::function<void(Cells&, const Row&, const Record&)>;

std::string device_text(const Row& row, std::size_t record_index, std::size_t records) {
  std::string text = row.device;
  if (row.simulated) text += " (simulated)";
  if (row.round) text += fmt::format(" round {}", row.round);
  if (records > 1) text += fmt::format(" run {}", record_index + 1);
  return text;
}

DataCell text_cell(std::string text) {
  return {std::move(text), std::nullopt};
}

DataCell missing_cell(const Row& row, const char* path) {
  return text_cell("n/a: " + missing_reason(row, path));
}

// `value` in `unit`, or "n/a: reason".
DataCell value_cell(const Row& row, const char* path, OptDouble value, const char* unit = "") {
  if (!value) return missing_cell(row, path);
  return {significant(*value, 4) + unit, value};
}

DataCell bytes_cell(const Row& row, const char* path, OptDouble value) {
  if (!value) return missing_cell(row, path);
  return {format_gib(*value), value};
}

DataCell time_cell(const Row& row, const char* path, OptDouble value) {
  if (!value) return missing_cell(row, path);
  return {format_time_us(*value), value};
}

std::string roof_text(const Roofs& roofs) {
  if (!roofs.hbm_gbps || !roofs.tensor_tflops) return "n/a: no ceilings of this device";
  return fmt::format("{:.0f} GB/s, {:.0f} TFLOPS ({})", *roofs.hbm_gbps, *roofs.tensor_tflops,
                     roofs.source);
}

OptDouble of_time(const Row& row, double TimeUs::*member) {
  if (!row.time_us) return std::nullopt;
  return (*row.time_us).*member;
}

OptDouble real(OptInt value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

OptDouble quotient(OptDouble a, OptDouble b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

std::string joined(const std::vector<std::string>& items) {
  return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
}

std::string flags_text(const Row& row) {
  std::vector<std::string> flags = row.flags;
  for (const std::string& reason : row.throttle) flags.push_back("throttle: " + reason);
  return joined(flags);
}

std::string verify_text(const VerifyResult& verify) {
  std::string text = verify.status;
  if (!verify.shape.empty()) text += " at " + verify.shape;
  if (verify.max_abs_err && verify.tolerance_max) {
    text += fmt::format(", max error {} of {}", significant(*verify.max_abs_err, 2),
                        significant(*verify.tolerance_max, 2));
  }
  if (!verify.rows_checked.empty()) text += ", rows " + verify.rows_checked;
  return text;
}

std::string resources_text(const Row& row) {
  const Resources& r = row.resources;
  if (!r.registers && !r.smem_bytes) return "n/a: " + missing_reason(row, "resources");
  const auto show = [](OptInt value) { return value ? fmt::format("{}", *value) : "n/a"; };
  return fmt::format("{} registers, {} spilled bytes, {} bytes smem, {} threads, grid {}{}",
                     show(r.registers), show(r.spill_bytes), show(r.smem_bytes), show(r.threads),
                     show(r.grid), r.waves ? fmt::format(", {} waves", significant(*r.waves)) : "");
}

std::string reason_text(const Row& row) {
  std::string reason = row.reason.empty() ? "no reason given" : row.reason;
  if (row.memory.needed_bytes && row.memory.free_bytes) {
    reason += fmt::format(" (needs {}, free {})",
                          format_gib(static_cast<double>(*row.memory.needed_bytes)),
                          format_gib(static_cast<double>(*row.memory.free_bytes)));
  }
  return reason;
}

bool is_ok(const Row& row) {
  return row.status == Status::ok;
}

// The rows that `wanted` takes, in the records' order: case, device, then what `fill` adds.
void add_rows(DataTable& table, std::span<const Record> records, std::size_t limit,
              const std::function<bool(const Row&)>& wanted, const Fill& fill) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    const std::vector<Row>& rows = records[i].rows;
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const Row& row = rows[j];
      if (!wanted(row)) continue;
      ++table.total;
      if (table.rows.size() >= limit) continue;
      DataRow data{fmt::format("{}:{}", i, j), "", row_anchor(row, i), {}};
      data.cells.push_back(text_cell(row.case_id));
      data.cells.push_back(text_cell(device_text(row, i, records.size())));
      fill(data.cells, row, records[i]);
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

DataTable roofline_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-roofline",
                  "Points of the roofline",
                  {"case", "device", "FLOP/byte", "compulsory FLOP/byte", "TFLOPS", "% of roof",
                   "side", "roofs"}};
  add_rows(table, records, limit, is_ok, [](Cells& cells, const Row& row, const Record& record) {
    const Roofs roofs = roofs_of(record, row.device, row.gpu, row.problem.dtype);
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

DataTable throughput_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{
      "table-throughput",
      "Median time and throughput",
      {"case", "device", "seqlen", "time", "95 % interval", "n", "TFLOPS", "hardware TFLOPS"}};
  add_rows(table, records, limit, is_ok, [](Cells& cells, const Row& row, const Record&) {
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

DataTable speedup_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-speedup",
                  "Time against the baseline kernel on the same problem and device",
                  {"case", "device", "time", "baseline", "baseline time", "speed-up"}};
  std::map<const Record*, std::pair<std::string, Rivals>> of_record;
  for (const Record& record : records) {
    auto& [baseline, rivals] = of_record[&record];
    const Pivot grid = pivot(record);
    if (!grid.kernels.empty()) baseline = grid.kernels.front();
    for (const Row& row : record.rows) {
      if (is_ranked(row)) rivals[rival_key(row)][kernel_label(row)] = &row;
    }
  }
  add_rows(table, records, limit, is_ranked,
           [&](Cells& cells, const Row& row, const Record& record) {
             const auto& [baseline, rivals] = of_record.at(&record);
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

DataTable bytes_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-bytes",
                  "Bytes moved",
                  {"case", "device", "compulsory", "HBM read", "HBM written", "HBM / compulsory",
                   "HBM rate", "SM to L2 read", "predicted HBM"}};
  add_rows(table, records, limit, is_ok, [](Cells& cells, const Row& row, const Record&) {
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

DataTable memory_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-memory",
                  "Device memory that a case needs",
                  {"case", "device", "seqlen", "status", "workspace", "peak", "needed", "free"}};
  const auto wanted = [](const Row& row) { return is_ok(row) || row.status == Status::oom; };
  add_rows(table, records, limit, wanted, [](Cells& cells, const Row& row, const Record&) {
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

DataTable accuracy_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-accuracy",
                  "Error against the fp64 reference, and throughput",
                  {"case", "device", "verified", "relative error", "rms error", "max error",
                   "max error allowed", "max error / allowed", "TFLOPS"}};
  add_rows(table, records, limit, is_ok, [](Cells& cells, const Row& row, const Record&) {
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

DataTable noise_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-noise",
                  "Spread of the samples, and the state of the card",
                  {"case", "device", "n", "time", "half width of the interval", "fastest sample",
                   "SM clock", "SM clock range", "power", "temperature", "L2", "flags"}};
  add_rows(table, records, limit, is_ok, [](Cells& cells, const Row& row, const Record&) {
    if (!row.time_us) {
      for (int i = 0; i < 4; ++i) cells.push_back(missing_cell(row, "time_us"));
    } else {
      const TimeUs& time = *row.time_us;
      cells.push_back({fmt::format("{}", time.n), static_cast<double>(time.n)});
      cells.push_back({format_time_us(time.median), time.median});
      cells.push_back(value_cell(
          row, "time_us", quotient(50 * (time.ci95_high - time.ci95_low), OptDouble(time.median)),
          " %"));
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

DataTable model_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-model",
                  "What the model predicts of the rows that were measured",
                  {"case", "device", "time", "predicted time", "predicted / measured", "HBM",
                   "predicted HBM", "predicted / counted"}};
  const auto wanted = [](const Row& row) { return is_ok(row) && !row.simulated; };
  add_rows(table, records, limit, wanted, [](Cells& cells, const Row& row, const Record&) {
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

DataTable not_ok_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-not-ok",
                  "Rows that are not ok: never plotted, never ranked",
                  {"case", "device", "status", "reason"}};
  add_rows(table, records, limit, std::not_fn(is_ok),
           [](Cells& cells, const Row& row, const Record&) {
             cells.push_back(text_cell(std::string(to_string(row.status))));
             cells.push_back(text_cell(reason_text(row)));
           });
  return table;
}

DataTable detail_table(std::span<const Record> records, std::size_t limit) {
  DataTable table{"table-detail",
                  "Every row of the record",
                  {"case", "device", "status", "verified", "time", "model FLOPs", "resources",
                   "flags", "reproduce"},
                  false};
  const auto any = [](const Row&) { return true; };
  add_rows(table, records, limit, any, [](Cells& cells, const Row& row, const Record&) {
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
