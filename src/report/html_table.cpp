#include "report/html_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"
#include "report/escape.hpp"
#include "report/pivot.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

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

// `value` in `unit`, or "n/a: reason".
DataCell value_cell(const Row& row, const char* path, OptDouble value, const char* unit = "") {
  if (!value) return text_cell("n/a: " + missing_reason(row, path));
  return {significant(*value, 4) + unit, value};
}

DataCell int_cell(const Row& row, const char* path, OptInt value) {
  if (!value) return text_cell("n/a: " + missing_reason(row, path));
  return {fmt::format("{}", *value), static_cast<double>(*value)};
}

DataCell bytes_cell(const Row& row, const char* path, OptDouble value) {
  if (!value) return text_cell("n/a: " + missing_reason(row, path));
  return {format_gib(*value), value};
}

DataCell time_cell(const Row& row, const char* path, OptDouble value) {
  if (!value) return text_cell("n/a: " + missing_reason(row, path));
  return {format_time_us(*value), value};
}

std::string roof_text(const Roofs& roofs) {
  if (!roofs.hbm_gbps || !roofs.tensor_tflops) return "n/a: no ceilings of this device";
  return fmt::format("{:.0f} GB/s, {:.0f} TFLOPS ({})", *roofs.hbm_gbps, *roofs.tensor_tflops,
                     roofs.source);
}

template <class Fill>
void add_rows(DataTable& table, std::span<const Record> records, bool only_ok, Fill fill) {
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (const Row& row : records[i].rows) {
      if ((row.status == Status::ok) != only_ok) continue;
      DataRow data{row.case_id, kernel_label(row), row_anchor(row, i), {}};
      data.cells.push_back(text_cell(row.case_id));
      data.cells.push_back(text_cell(device_text(row, i, records.size())));
      fill(data.cells, row, records[i]);
      table.rows.push_back(std::move(data));
    }
  }
}

OptDouble of_time(const Row& row, double TimeUs::*member) {
  if (!row.time_us) return std::nullopt;
  return (*row.time_us).*member;
}

OptDouble real(OptInt value) {
  if (!value) return std::nullopt;
  return static_cast<double>(*value);
}

std::string joined(const std::vector<std::string>& items) {
  return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
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

// [case, kernel, anchor, [cell or [cell, sort key], ...]]
std::string rest_row(const DataRow& row) {
  std::string out = fmt::format("[{},{},\"{}\",[", script_json_string(row.case_id),
                                script_json_string(row.kernel), row.anchor);
  for (const DataCell& cell : row.cells) {
    if (&cell != row.cells.data()) out += ',';
    const std::string text = script_json_string(cell.text);
    out += cell.sort && std::isfinite(*cell.sort) ? fmt::format("[{},{}]", text, *cell.sort) : text;
  }
  return out + "]]";
}

std::string resources_text(const Row& row) {
  const Resources& r = row.resources;
  if (!r.registers && !r.smem_bytes) return "n/a: " + missing_reason(row, "resources");
  const auto show = [](OptInt value) { return value ? fmt::format("{}", *value) : "n/a"; };
  return fmt::format("{} registers, {} spilled bytes, {} bytes smem, {} threads, grid {}{}",
                     show(r.registers), show(r.spill_bytes), show(r.smem_bytes), show(r.threads),
                     show(r.grid), r.waves ? fmt::format(", {} waves", significant(*r.waves)) : "");
}

}  // namespace

std::string row_anchor(const Row& row, std::size_t record_index) {
  std::string text = "case-" + row.case_id + "@" + row.device;
  if (row.round) text += fmt::format(".r{}", row.round);
  if (record_index) text += fmt::format(".run{}", record_index + 1);
  return escape_anchor(text);
}

DataTable ranking_table(std::span<const Record> records) {
  DataTable table{
      "table-ranking",
      "Geometric means over the problems that ran; wins among problems with a rival",
      {"kernel", "device", "pass", "dtype", "TFLOPS (geomean)", "fastest in", "speed-up (geomean)"},
      false,
      {}};
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
  return table;
}

DataTable roofline_table(std::span<const Record> records) {
  DataTable table{"table-roofline",
                  "Points of the roofline",
                  {"case", "device", "FLOP/byte", "compulsory FLOP/byte", "TFLOPS", "% of roof",
                   "side", "roofs"},
                  true,
                  {}};
  add_rows(table, records, true, [](auto& cells, const Row& row, const Record& record) {
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

DataTable throughput_table(std::span<const Record> records) {
  DataTable table{
      "table-throughput",
      "Median time and throughput",
      {"case", "device", "seqlen", "time", "95 % interval", "n", "TFLOPS", "hardware TFLOPS"},
      true,
      {}};
  add_rows(table, records, true, [](auto& cells, const Row& row, const Record&) {
    cells.push_back(
        {fmt::format("{}", row.problem.seqlen_kv), static_cast<double>(row.problem.seqlen_kv)});
    cells.push_back(time_cell(row, "time_us", of_time(row, &TimeUs::median)));
    cells.push_back(text_cell(row.time_us
                                  ? fmt::format("{} to {}", format_time_us(row.time_us->ci95_low),
                                                format_time_us(row.time_us->ci95_high))
                                  : "n/a: " + missing_reason(row, "time_us")));
    cells.push_back(int_cell(row, "time_us", row.time_us ? OptInt(row.time_us->n) : OptInt()));
    cells.push_back(value_cell(row, "derived.tflops", row.derived.tflops));
    cells.push_back(value_cell(row, "derived.hardware_tflops", row.derived.hardware_tflops));
  });
  return table;
}

DataTable bytes_table(std::span<const Record> records) {
  DataTable table{"table-bytes",
                  "Bytes moved",
                  {"case", "device", "compulsory", "HBM read", "HBM written", "HBM / compulsory",
                   "HBM rate", "SM to L2 read", "predicted HBM", "workspace"},
                  true,
                  {}};
  add_rows(table, records, true, [](auto& cells, const Row& row, const Record&) {
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
    cells.push_back(bytes_cell(row, "memory.workspace_bytes", real(row.memory.workspace_bytes)));
  });
  return table;
}

DataTable not_ok_table(std::span<const Record> records) {
  DataTable table{"table-not-ok",
                  "Rows that are not ok: never plotted, never ranked",
                  {"case", "device", "status", "reason"},
                  true,
                  {}};
  add_rows(table, records, false, [](auto& cells, const Row& row, const Record&) {
    cells.push_back(text_cell(std::string(to_string(row.status))));
    std::string reason = row.reason.empty() ? "no reason given" : row.reason;
    if (row.memory.needed_bytes && row.memory.free_bytes) {
      reason += fmt::format(" (needs {}, free {})",
                            format_gib(static_cast<double>(*row.memory.needed_bytes)),
                            format_gib(static_cast<double>(*row.memory.free_bytes)));
    }
    cells.push_back(text_cell(std::move(reason)));
  });
  return table;
}

DataTable detail_table(std::span<const Record> records) {
  DataTable table{"table-detail",
                  "Every row of the record",
                  {"case", "device", "status", "verified", "time", "predicted time", "SM clock",
                   "power", "temperature", "flags", "model FLOPs", "resources", "reproduce"},
                  false,
                  {}};
  const auto fill = [](auto& cells, const Row& row, const Record&) {
    cells.push_back(text_cell(std::string(to_string(row.status))));
    cells.push_back(text_cell(verify_text(row.verify)));
    cells.push_back(time_cell(row, "time_us", of_time(row, &TimeUs::median)));
    cells.push_back(time_cell(row, "model.predicted_time_us", row.model.predicted_time_us));
    cells.push_back(
        value_cell(row, "clock_mhz", row.clock_mhz ? row.clock_mhz->median : OptDouble(), " MHz"));
    cells.push_back(value_cell(row, "power_w", row.power_w, " W"));
    cells.push_back(value_cell(row, "temperature_c", row.temperature_c, " C"));
    std::vector<std::string> flags = row.flags;
    for (const std::string& reason : row.throttle) flags.push_back("throttle: " + reason);
    cells.push_back(text_cell(joined(flags)));
    cells.push_back({flops_text(row), row.model.flops});
    cells.push_back(text_cell(resources_text(row)));
    cells.push_back(text_cell(row.repro));
  };
  add_rows(table, records, true, fill);
  add_rows(table, records, false, fill);
  return table;
}

std::string html_table(const DataTable& table, std::size_t static_rows) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">"
      "<table id=\"{1}\"{2}><caption>{0}</caption><thead><tr>",
      escape_html(table.caption), table.id, table.links ? " data-links" : "");
  for (const std::string& column : table.columns) {
    out += fmt::format("<th scope=\"col\">{}</th>", escape_html(column));
  }
  out += "</tr></thead><tbody>\n";
  const std::size_t shown = std::min(static_rows, table.rows.size());
  for (std::size_t i = 0; i < shown; ++i) {
    const DataRow& row = table.rows[i];
    out += fmt::format("<tr data-case=\"{}\" data-kernel=\"{}\"", escape_html(row.case_id),
                       escape_html(row.kernel));
    if (!table.links && !row.anchor.empty()) out += fmt::format(" id=\"{}\"", row.anchor);
    out += ">";
    for (std::size_t c = 0; c < row.cells.size(); ++c) {
      const DataCell& cell = row.cells[c];
      const std::string text = escape_html(cell.text);
      if (c == 0 && table.links) {
        out += fmt::format("<td><a href=\"#{}\">{}</a></td>", row.anchor, text);
      } else if (cell.sort) {
        out += fmt::format("<td data-v=\"{}\">{}</td>", *cell.sort, text);
      } else {
        out += fmt::format("<td>{}</td>", text);
      }
    }
    out += "</tr>\n";
  }
  out += "</tbody></table></div>\n";
  if (shown == table.rows.size()) return out;
  out += fmt::format(
      "<p class=\"more\">{} more rows need scripts.</p><script type=\"application/json\" "
      "data-rest=\"{}\">[",
      table.rows.size() - shown, table.id);
  for (std::size_t i = shown; i < table.rows.size(); ++i) {
    out += fmt::format("{}{}", i == shown ? "" : ",\n", rest_row(table.rows[i]));
  }
  out += "]</script>\n";
  return out;
}

}  // namespace rooflash
