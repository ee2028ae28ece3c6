// OpenMetrics 1.0.0, text format.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/units.hpp"
#include "export/cases.hpp"

namespace rooflash {
namespace {

using Labels = std::vector<std::pair<std::string_view, std::string>>;

// Inside quotes: \\, \" and \n are the format's escapes. `printable` leaves no line end, and its
// own \xNN becomes \\xNN.
std::string label_value(std::string_view text) {
  std::string out;
  for (const char c : printable(text, std::string_view::npos)) {
    if (c == '\\' || c == '"') out += '\\';
    out += c;
  }
  return out;
}

std::string label_set(const Labels& labels) {
  std::string out = "{";
  for (const auto& [name, value] : labels) {
    out += fmt::format("{}{}=\"{}\"", out.size() > 1 ? "," : "", name, label_value(value));
  }
  return out + "}";
}

// What tells the samples of one metric apart: a record holds a case once a device and round.
Labels identity(const Row& row) {
  return {{"case", row.case_id},
          {"device", row.device},
          {"gpu", row.gpu},
          {"round", std::to_string(row.round)},
          {"simulated", row.simulated ? "true" : "false"}};
}

struct Metric {
  const char* name;  // ends with the unit
  const char* unit;
  const char* help;
  OptDouble (*value)(const Row& row);  // of a row that is ok
};

OptDouble of(OptInt value) {
  return value ? OptDouble(static_cast<double>(*value)) : std::nullopt;
}

OptDouble scaled(OptDouble value, double factor) {
  return value ? OptDouble(*value * factor) : std::nullopt;
}

OptDouble time_s(const Row& row, double TimeUs::*figure) {
  return row.time_us ? OptDouble(*row.time_us.*figure * 1e-6) : std::nullopt;
}

const Metric kMetrics[] = {
    {"rooflash_time_median_seconds", "seconds", "Median time of a launch",
     [](const Row& row) { return time_s(row, &TimeUs::median); }},
    {"rooflash_time_ci95_low_seconds", "seconds", "Lower end of the 95 % interval of the median",
     [](const Row& row) { return time_s(row, &TimeUs::ci95_low); }},
    {"rooflash_time_ci95_high_seconds", "seconds", "Upper end of the 95 % interval of the median",
     [](const Row& row) { return time_s(row, &TimeUs::ci95_high); }},
    {"rooflash_time_min_seconds", "seconds", "Shortest time of a launch",
     [](const Row& row) { return time_s(row, &TimeUs::min); }},
    {"rooflash_time_samples", "samples", "Timed launches",
     [](const Row& row) { return row.time_us ? of(row.time_us->n) : std::nullopt; }},
    {"rooflash_sm_cycles", "cycles", "Median of time x SM clock",
     [](const Row& row) { return row.cycles_median; }},
    {"rooflash_sm_clock_median_hertz", "hertz", "Median SM clock of the timed launches",
     [](const Row& row) {
       return scaled(row.clock_mhz ? row.clock_mhz->median : std::nullopt, 1e6);
     }},
    {"rooflash_power_watts", "watts", "Power of the board right after the timed launches",
     [](const Row& row) { return row.power_w; }},
    {"rooflash_launch_energy_joules", "joules", "Energy of the board a launch, back to back",
     [](const Row& row) {
       return row.energy ? OptDouble(row.energy->joules_per_launch) : std::nullopt;
     }},
    {"rooflash_temperature_celsius", "celsius", "Temperature right after the timed launches",
     [](const Row& row) { return row.temperature_c; }},
    {"rooflash_model_flops", "flops", "Floating-point operations by the formula",
     [](const Row& row) { return OptDouble(row.model.flops); }},
    {"rooflash_compulsory_bytes", "bytes", "Each input read once, each output written once",
     [](const Row& row) { return of(row.model.compulsory_bytes); }},
    {"rooflash_predicted_time_seconds", "seconds", "Time that the model predicts",
     [](const Row& row) { return scaled(row.model.predicted_time_us, 1e-6); }},
    {"rooflash_predicted_hbm_bytes", "bytes", "HBM traffic that the model predicts",
     [](const Row& row) { return row.model.predicted_hbm_bytes; }},
    {"rooflash_hbm_read_bytes", "bytes", "Counted bytes read from HBM",
     [](const Row& row) { return row.counters.hbm_read_bytes; }},
    {"rooflash_hbm_write_bytes", "bytes", "Counted bytes written to HBM",
     [](const Row& row) { return row.counters.hbm_write_bytes; }},
    {"rooflash_sm_l2_read_bytes", "bytes", "Counted bytes that the SMs read from L2",
     [](const Row& row) { return row.counters.sm_l2_read_bytes; }},
    {"rooflash_sm_l2_write_bytes", "bytes", "Counted bytes that the SMs wrote to L2",
     [](const Row& row) { return row.counters.sm_l2_write_bytes; }},
    {"rooflash_l2_read_bytes", "bytes", "Counted bytes asked of L2, requests of several SMs merged",
     [](const Row& row) { return row.counters.l2_read_bytes; }},
    {"rooflash_tensor_ops", "ops", "Counted tensor operations",
     [](const Row& row) { return row.counters.tensor_ops; }},
    {"rooflash_tensor_pipe_percent", "percent", "Activity of the tensor pipe",
     [](const Row& row) { return row.counters.tensor_pipe_pct; }},
    {"rooflash_model_flops_per_second", "flops_per_second", "Model FLOPs over the median time",
     [](const Row& row) { return scaled(row.derived.tflops, 1e12); }},
    {"rooflash_hardware_flops_per_second", "flops_per_second",
     "Counted tensor operations over the median time",
     [](const Row& row) { return scaled(row.derived.hardware_tflops, 1e12); }},
    {"rooflash_hbm_bytes_per_second", "bytes_per_second", "Counted HBM bytes over the median time",
     [](const Row& row) { return scaled(row.derived.hbm_gbps, 1e9); }},
    {"rooflash_intensity_flops_per_byte", "flops_per_byte", "Model FLOPs over counted HBM bytes",
     [](const Row& row) { return row.derived.intensity_flop_per_byte; }},
    {"rooflash_roof_percent", "percent", "Throughput over the lower measured roof",
     [](const Row& row) { return row.derived.roof_pct; }},
    {"rooflash_peak_memory_bytes", "bytes", "Workspace and tensors together",
     [](const Row& row) { return of(row.memory.peak_bytes); }},
    {"rooflash_error_max", "", "Largest absolute error of the output against the reference",
     [](const Row& row) { return row.verify.max_abs_err; }},
    {"rooflash_registers", "registers", "Registers a thread of the main kernel",
     [](const Row& row) { return of(row.resources.registers); }},
    {"rooflash_spill_bytes", "bytes", "Spilled registers a thread of the main kernel",
     [](const Row& row) { return of(row.resources.spill_bytes); }},
    {"rooflash_smem_bytes", "bytes", "Shared memory a block of the main kernel",
     [](const Row& row) { return of(row.resources.smem_bytes); }},
    {"rooflash_code_bytes", "bytes", "Code of the main kernel",
     [](const Row& row) { return of(row.resources.code_bytes); }},
};

// A float needs a point or an exponent, an integer must not have one.
std::string number(double value) {
  std::string text = fmt::format("{}", value);
  const bool integer = text.find_first_not_of("-0123456789") == std::string::npos;
  return integer ? text + ".0" : text;
}

std::string metadata(const char* name, const char* type, const char* unit, const char* help) {
  std::string out = fmt::format("# TYPE {} {}\n", name, type);
  if (*unit != '\0') out += fmt::format("# UNIT {} {}\n", name, unit);
  return out + fmt::format("# HELP {} {}.\n", name, help);
}

std::string row_info(const Row& row) {
  Labels labels = identity(row);
  labels.emplace_back("kernel", row.kernel);
  labels.emplace_back("provider", row.provider);
  labels.emplace_back("status", to_string(row.status));
  labels.emplace_back("reason", row.reason);
  labels.emplace_back("verify", row.verify.status);
  labels.emplace_back("l2", row.time_us ? row.time_us->l2 : "");
  labels.emplace_back("power", row.time_us ? row.time_us->power : "");
  labels.emplace_back("flags", fmt::format("{}", fmt::join(row.flags, ",")));
  labels.emplace_back("definition_hash", row.definition_hash);
  return fmt::format("rooflash_row_info{} 1\n", label_set(labels));
}

}  // namespace

Export export_openmetrics(const NamedRecord& input) {
  const Record& record = input.record;
  Export out{"", rows_left_out(input)};
  out.text += metadata("rooflash_record", "info", "", "The record that all samples are of");
  out.text += fmt::format("rooflash_record_info{} 1\n",
                          label_set({{"version", record.tool.version},
                                     {"commit", record.tool.commit},
                                     {"dirty", record.tool.dirty ? "true" : "false"},
                                     {"date", record.environment.date},
                                     {"suite", record.suite},
                                     {"driver", record.environment.driver},
                                     {"cuda", record.environment.cuda}}));
  out.text += metadata("rooflash_row", "info", "", "Each row with its status");
  for (const Row& row : record.rows) out.text += row_info(row);
  for (const Metric& metric : kMetrics) {
    std::string samples;
    for (const Row& row : record.rows) {
      if (row.status != Status::ok || is_implausible(row)) continue;
      const OptDouble value = metric.value(row);
      if (!value) continue;
      samples += fmt::format("{}{} {}\n", metric.name, label_set(identity(row)), number(*value));
    }
    if (samples.empty()) continue;
    out.text += metadata(metric.name, "gauge", metric.unit, metric.help) + samples;
  }
  out.text += "# EOF\n";
  return out;
}

}  // namespace rooflash
