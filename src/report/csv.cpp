#include <fmt/format.h>

#include "report/escape.hpp"
#include "report/formats.hpp"
#include "report/roofs.hpp"

namespace rooflash {
namespace {

template <class Value>
std::string number(const std::optional<Value>& value) {
  return value ? fmt::format("{}", *value) : std::string();
}

std::string joined(const std::vector<std::string>& items) {
  return fmt::format("{}", fmt::join(items, ";"));
}

std::string options_text(const Problem& problem) {
  std::string text;
  for (const auto& [name, value] : problem.options) {
    text += fmt::format("{}{}={}", text.empty() ? "" : ";", name, value);
  }
  return text;
}

std::string missing_text(const Row& row) {
  std::string text;
  for (const auto& [path, reason] : row.missing) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", path, reason);
  }
  return text;
}

struct Column {
  const char* name;
  std::string (*value)(const Row&);
};

template <class Get>
OptDouble of_time(const Row& row, Get get) {
  if (!row.time_us) return std::nullopt;
  return static_cast<double>(get(*row.time_us));
}

#define ROOFLASH_COLUMN(name, expression)                          \
  Column {                                                         \
    name, [](const Row& row) -> std::string { return expression; } \
  }

const Column kColumns[] = {
    ROOFLASH_COLUMN("case", row.case_id),
    ROOFLASH_COLUMN("definition_hash", row.definition_hash),
    ROOFLASH_COLUMN("kernel", row.kernel),
    ROOFLASH_COLUMN("provider", row.provider),
    ROOFLASH_COLUMN("device", row.device),
    ROOFLASH_COLUMN("gpu", row.gpu),
    ROOFLASH_COLUMN("round", fmt::format("{}", row.round)),
    ROOFLASH_COLUMN("status", std::string(to_string(row.status))),
    ROOFLASH_COLUMN("reason", row.reason),
    ROOFLASH_COLUMN("simulated", row.simulated ? "true" : "false"),
    ROOFLASH_COLUMN("pass", std::string(to_string(row.problem.pass))),
    ROOFLASH_COLUMN("dtype", std::string(to_string(row.problem.dtype))),
    ROOFLASH_COLUMN("batch", fmt::format("{}", row.problem.batch)),
    ROOFLASH_COLUMN("heads_q", fmt::format("{}", row.problem.heads_q)),
    ROOFLASH_COLUMN("heads_kv", fmt::format("{}", row.problem.heads_kv)),
    ROOFLASH_COLUMN("seqlen_q", fmt::format("{}", row.problem.seqlen_q)),
    ROOFLASH_COLUMN("seqlen_kv", fmt::format("{}", row.problem.seqlen_kv)),
    ROOFLASH_COLUMN("headdim", fmt::format("{}", row.problem.headdim)),
    ROOFLASH_COLUMN("headdim_v", fmt::format("{}", row.problem.headdim_v)),
    ROOFLASH_COLUMN("mask", std::string(to_string(row.problem.mask.kind))),
    ROOFLASH_COLUMN("align", std::string(to_string(row.problem.mask.align))),
    ROOFLASH_COLUMN("window_left", fmt::format("{}", row.problem.mask.left)),
    ROOFLASH_COLUMN("window_right", fmt::format("{}", row.problem.mask.right)),
    ROOFLASH_COLUMN("distribution", std::string(to_string(row.problem.distribution))),
    ROOFLASH_COLUMN("options", options_text(row.problem)),
    ROOFLASH_COLUMN("verify_status", row.verify.status),
    ROOFLASH_COLUMN("max_abs_err", number(row.verify.max_abs_err)),
    ROOFLASH_COLUMN("tolerance_max", number(row.verify.tolerance_max)),
    ROOFLASH_COLUMN("rms_err", number(row.verify.rms_err)),
    ROOFLASH_COLUMN("rel_err", number(row.verify.rel_err)),
    ROOFLASH_COLUMN("unquantized_rms_err", number(row.verify.unquantized_rms_err)),
    ROOFLASH_COLUMN("unquantized_rel_err", number(row.verify.unquantized_rel_err)),
    ROOFLASH_COLUMN("flops", fmt::format("{}", row.model.flops)),
    ROOFLASH_COLUMN("compulsory_bytes", fmt::format("{}", row.model.compulsory_bytes)),
    ROOFLASH_COLUMN("predicted_hbm_bytes", number(row.model.predicted_hbm_bytes)),
    ROOFLASH_COLUMN("predicted_time_us", number(row.model.predicted_time_us)),
    ROOFLASH_COLUMN("time_us_median",
                    number(of_time(row, [](const TimeUs& time) { return time.median; }))),
    ROOFLASH_COLUMN("time_us_ci95_low",
                    number(of_time(row, [](const TimeUs& time) { return time.ci95_low; }))),
    ROOFLASH_COLUMN("time_us_ci95_high",
                    number(of_time(row, [](const TimeUs& time) { return time.ci95_high; }))),
    ROOFLASH_COLUMN("time_us_min",
                    number(of_time(row, [](const TimeUs& time) { return time.min; }))),
    ROOFLASH_COLUMN("quantize_us_median",
                    row.quantize_us ? number(OptDouble(row.quantize_us->median)) : std::string()),
    ROOFLASH_COLUMN("time_with_quantize_us", number(row.time_with_quantize_us)),
    ROOFLASH_COLUMN("saturated_elements", number(row.saturated_elements)),
    ROOFLASH_COLUMN("n", row.time_us ? fmt::format("{}", row.time_us->n) : std::string()),
    ROOFLASH_COLUMN("l2", row.time_us ? row.time_us->l2 : std::string()),
    ROOFLASH_COLUMN("timer", row.time_us ? row.time_us->timer : std::string()),
    ROOFLASH_COLUMN("clock_mhz_median",
                    row.clock_mhz ? number(row.clock_mhz->median) : std::string()),
    ROOFLASH_COLUMN("power_w", number(row.power_w)),
    ROOFLASH_COLUMN("temperature_c", number(row.temperature_c)),
    ROOFLASH_COLUMN("counters_status", row.counters.status),
    ROOFLASH_COLUMN("hbm_read_bytes", number(row.counters.hbm_read_bytes)),
    ROOFLASH_COLUMN("hbm_write_bytes", number(row.counters.hbm_write_bytes)),
    ROOFLASH_COLUMN("sm_l2_read_bytes", number(row.counters.sm_l2_read_bytes)),
    ROOFLASH_COLUMN("sm_l2_write_bytes", number(row.counters.sm_l2_write_bytes)),
    ROOFLASH_COLUMN("tensor_ops", number(row.counters.tensor_ops)),
    ROOFLASH_COLUMN("tensor_pipe_pct", number(row.counters.tensor_pipe_pct)),
    ROOFLASH_COLUMN("tflops", number(row.derived.tflops)),
    ROOFLASH_COLUMN("hardware_tflops", number(row.derived.hardware_tflops)),
    ROOFLASH_COLUMN("hbm_gbps", number(row.derived.hbm_gbps)),
    ROOFLASH_COLUMN("intensity_flop_per_byte", number(row.derived.intensity_flop_per_byte)),
    ROOFLASH_COLUMN("roof_pct", number(row.derived.roof_pct)),
    ROOFLASH_COLUMN("workspace_bytes", number(row.memory.workspace_bytes)),
    ROOFLASH_COLUMN("peak_bytes", number(row.memory.peak_bytes)),
    ROOFLASH_COLUMN("needed_bytes", number(row.memory.needed_bytes)),
    ROOFLASH_COLUMN("free_bytes", number(row.memory.free_bytes)),
    ROOFLASH_COLUMN("throttle", joined(row.throttle)),
    ROOFLASH_COLUMN("flags", joined(row.flags)),
    ROOFLASH_COLUMN("missing", missing_text(row)),
    ROOFLASH_COLUMN("repro", row.repro),
};
#undef ROOFLASH_COLUMN

}  // namespace

std::string render_csv(const Record& record) {
  std::string out;
  const auto write = [&](auto text_of) {
    for (const Column& column : kColumns) {
      if (&column != kColumns) out += ',';
      out += csv_field(text_of(column));
    }
    out += "\r\n";
  };
  write([](const Column& column) { return std::string(column.name); });
  for (const Row& row : record.rows) {
    write([&](const Column& column) { return column.value(row); });
  }
  return out;
}

}  // namespace rooflash
