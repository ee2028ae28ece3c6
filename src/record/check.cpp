#include "record/check.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <tuple>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

bool differs(double value, double expected, double relative) {
  return std::fabs(value - expected) > relative * std::fabs(expected);
}

// `samples` holds one at least.
double median_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  const std::size_t middle = samples.size() / 2;
  if (samples.size() % 2 == 1) return samples[middle];
  return samples[middle - 1] + (samples[middle] - samples[middle - 1]) / 2;
}

class RowCheck {
 public:
  RowCheck(const Row& row, std::string_view place) : row_(row), place_(place) {}

  void run() const {
    const std::string problem = invalid_reason(row_.problem);
    if (!problem.empty()) fail("problem", problem);
    const std::string id = case_id(row_.kernel, row_.problem);
    if (row_.case_id != id) {
      fail("case", "\"" + printable(row_.case_id) + "\", but kernel and problem are those of \"" +
                       printable(id) + "\"");
    }
    if (row_.round < 0) fail("round", "is negative");
    check_status();
    if (row_.time_us) check_time(*row_.time_us, "time_us");
    check_quantizing();
    check_errors();
    check_clock();
    check_derived();
    check_sizes();
    check_counters();
    if (row_.energy) check_energy(*row_.energy);
    if (row_.trace) check_trace(*row_.trace);
  }

 private:
  [[noreturn]] void fail(std::string_view field, const std::string& what) const {
    throw UsageError(std::string(place_) + "." + std::string(field) + ": " + what);
  }

  void check_status() const {
    const std::string status(to_string(row_.status));
    const bool ok = row_.status == Status::ok;
    if (!ok && row_.time_us) fail("time_us", "a time on a row whose status is " + status);
    if (ok && !row_.time_us && !row_.missing.contains("time_us")) {
      fail("time_us", "an ok row without a time, and missing gives no reason");
    }
    if (!ok && row_.reason.empty()) fail("reason", "is empty on a row whose status is " + status);
    if (ok && row_.verify.status == "failed") {
      fail("verify.status", "failed verification on a row whose status is ok");
    }
    if (row_.simulated != row_.device.starts_with("sim:")) {
      fail("simulated", "contradicts the device \"" + printable(row_.device, 60) + "\"");
    }
  }

  // `name` is time_us or quantize_us.
  void check_time(const TimeUs& time, const std::string& name) const {
    if (time.n < 1) fail(name + ".n", "must be positive");
    if (time.warmup_launches.value_or(1) < 1) fail(name + ".warmup_launches", "must be positive");
    // A report keeps some of many samples, the extremes among them, and says so.
    const bool thinned = row_.missing.contains(name + ".samples");
    const auto kept = static_cast<std::int64_t>(time.samples.size());
    if (thinned ? kept < 1 || kept > time.n : kept != time.n) {
      fail(name + ".n",
           std::to_string(time.n) + ", but there are " + std::to_string(kept) + " samples");
    }
    for (double sample : time.samples) {
      if (!(sample > 0)) fail(name + ".samples", "a time that is not positive");
    }
    const auto [low, high] = std::minmax_element(time.samples.begin(), time.samples.end());
    if (differs(time.min, *low, kSampleError)) fail(name + ".min", "is not that of the samples");
    if (time.median < *low * (1 - kSampleError) || time.median > *high * (1 + kSampleError) ||
        (!thinned && differs(time.median, median_of(time.samples), kSampleError))) {
      fail(name + ".median", "is not that of the samples");
    }
    if (row_.device.starts_with("sim:") != (time.timer == "model")) {
      fail(name + ".timer",
           time.timer + " contradicts the device \"" + printable(row_.device, 60) + "\"");
    }
    if (time.ci95_low > time.median || time.median > time.ci95_high) {
      fail(name + ".ci95", "does not enclose the median");
    }
  }

  void check_errors() const {
    const VerifyResult& verify = row_.verify;
    not_negative("verify.max_abs_err", verify.max_abs_err);
    not_negative("verify.rms_err", verify.rms_err);
    not_negative("verify.rel_err", verify.rel_err);
    not_negative("verify.unquantized_rms_err", verify.unquantized_rms_err);
    not_negative("verify.unquantized_rel_err", verify.unquantized_rel_err);
    const auto within = [](OptDouble error, OptDouble tolerance) {
      return !error || !tolerance || *error <= *tolerance * (1 + kSampleError);
    };
    if (verify.status == "passed" && (!within(verify.max_abs_err, verify.tolerance_max) ||
                                      !within(verify.rms_err, verify.tolerance_rms))) {
      fail("verify.status", "passed, with an error above its tolerance");
    }
  }

  void check_clock() const {
    if (row_.time_us && row_.clock_mhz && !row_.clock_mhz->samples.empty() &&
        row_.clock_mhz->samples.size() != row_.time_us->samples.size()) {
      fail("clock_mhz.samples", "not as many as the time samples");
    }
  }

  void check_quantizing() const {
    const bool has_any = row_.quantize_us || row_.time_with_quantize_us || row_.saturated_elements;
    if (has_any && row_.problem.dtype != DType::e4m3) {
      fail("quantize_us", "nothing is quantised for " + std::string(to_string(row_.problem.dtype)));
    }
    not_negative("saturated_elements", row_.saturated_elements);
    const std::int64_t elements =
        q_elements(row_.problem) + k_elements(row_.problem) + v_elements(row_.problem);
    if (row_.saturated_elements.value_or(0) > elements) {
      fail("saturated_elements", "more than the inputs have");
    }
    if (row_.quantize_us.has_value() != row_.time_with_quantize_us.has_value()) {
      fail("time_with_quantize_us", "goes with quantize_us, and one of the two is missing");
    }
    if (!row_.quantize_us) {
      if (row_.status == Status::ok && row_.problem.dtype == DType::e4m3 &&
          !row_.missing.contains("quantize_us")) {
        fail("quantize_us", "an ok e4m3 row without it, and missing gives no reason");
      }
      return;
    }
    if (!row_.time_us) fail("quantize_us", "on a row without a time");
    check_time(*row_.quantize_us, "quantize_us");
    if (row_.quantize_us->l2 != row_.time_us->l2 ||
        row_.quantize_us->power != row_.time_us->power) {
      fail("quantize_us", "was not taken as time_us was: l2 or power differs");
    }
    if (differs(*row_.time_with_quantize_us, row_.time_us->median + row_.quantize_us->median,
                kSampleError)) {
      fail("time_with_quantize_us", "is not the sum of the two medians");
    }
  }

  // A rate is `amount` over the median time, times `unit`.
  void check_rate(std::string_view field, OptDouble rate, OptDouble amount, double unit) const {
    not_negative(field, rate);
    if (!rate) return;
    if (!row_.time_us) fail(field, "a rate on a row without a time");
    if (amount && differs(*rate, *amount / row_.time_us->median * unit, kRateError)) {
      fail(field, "is not what the row's figures give");
    }
  }

  void check_derived() const {
    const Derived& derived = row_.derived;
    const Counters& counters = row_.counters;
    OptDouble hbm_bytes;
    if (counters.hbm_read_bytes && counters.hbm_write_bytes) {
      hbm_bytes = *counters.hbm_read_bytes + *counters.hbm_write_bytes;
    }
    check_rate("derived.tflops", derived.tflops, row_.model.flops, 1e-6);
    check_rate("derived.hardware_tflops", derived.hardware_tflops, counters.tensor_ops, 1e-6);
    check_rate("derived.hbm_gbps", derived.hbm_gbps, hbm_bytes, 1e-3);
    const OptDouble intensity = derived.intensity_flop_per_byte;
    not_negative("derived.intensity_flop_per_byte", intensity);
    if (intensity && hbm_bytes && differs(*intensity * *hbm_bytes, row_.model.flops, kRateError)) {
      fail("derived.intensity_flop_per_byte", "is not what the row's figures give");
    }
    not_negative("derived.roof_pct", derived.roof_pct);
  }

  void not_negative(std::string_view field, OptDouble value) const {
    if (value && *value < 0) fail(field, "is negative");
  }
  void not_negative(std::string_view field, OptInt value) const {
    if (value && *value < 0) fail(field, "is negative");
  }

  void check_sizes() const {
    not_negative("model.pairs", OptInt(row_.model.pairs));
    not_negative("model.flops", OptDouble(row_.model.flops));
    not_negative("model.compulsory_bytes", OptInt(row_.model.compulsory_bytes));
    not_negative("model.predicted_sm_l2_bytes", row_.model.predicted_sm_l2_bytes);
    not_negative("model.predicted_hbm_bytes", row_.model.predicted_hbm_bytes);
    not_negative("model.predicted_time_us", row_.model.predicted_time_us);
    not_negative("memory.workspace_bytes", row_.memory.workspace_bytes);
    not_negative("memory.peak_bytes", row_.memory.peak_bytes);
    not_negative("memory.needed_bytes", row_.memory.needed_bytes);
    not_negative("memory.free_bytes", row_.memory.free_bytes);
    not_negative("resources.registers", row_.resources.registers);
    not_negative("resources.spill_bytes", row_.resources.spill_bytes);
    not_negative("resources.smem_bytes", row_.resources.smem_bytes);
    not_negative("resources.threads", row_.resources.threads);
    not_negative("resources.grid", row_.resources.grid);
  }

  void check_counters() const {
    const Counters& counters = row_.counters;
    const std::pair<const char*, const OptDouble*> values[] = {
        {"counters.hbm_read_bytes", &counters.hbm_read_bytes},
        {"counters.hbm_write_bytes", &counters.hbm_write_bytes},
        {"counters.sm_l2_read_bytes", &counters.sm_l2_read_bytes},
        {"counters.sm_l2_write_bytes", &counters.sm_l2_write_bytes},
        {"counters.tensor_ops", &counters.tensor_ops},
        {"counters.tensor_pipe_pct", &counters.tensor_pipe_pct},
        {"counters.xu_pipe_pct", &counters.xu_pipe_pct},
        {"counters.gpu_time_us", &counters.gpu_time_us},
        {"counters.sm_clock_mhz", &counters.sm_clock_mhz},
    };
    for (const auto& [field, value] : values) {
      not_negative(field, *value);
      const bool explained = row_.missing.contains(field) || !counters.reason.empty();
      if (counters.status == "ok" && !*value && !explained) {
        fail(field, "null though counters.status is ok, and missing gives no reason");
      }
      if (counters.status != "ok" && *value) {
        fail(field, "a value though counters.status is " + counters.status);
      }
    }
  }

  void check_energy(const Energy& energy) const {
    if (!row_.time_us) fail("energy", "on a row without a time");
    if (energy.launches < 1) fail("energy.launches", "must be positive");
    if (!(energy.window_s > 0)) fail("energy.window_s", "must be positive");
    const double pj = energy.joules_per_launch * 1e12 / row_.model.flops;
    if (row_.model.flops > 0 && differs(energy.pj_per_flop, pj, kRateError)) {
      fail("energy.pj_per_flop", "is not the joules of a launch over the model's FLOPs");
    }
  }

  void check_trace(const Trace& trace) const {
    double end = 0;
    for (const TracePhase& phase : trace.phases) {
      if (phase.start_us < end || phase.end_us < phase.start_us) {
        fail("trace.phases",
             "a phase begins before the one before it ends, or ends before it begins");
      }
      end = phase.end_us;
    }
    const std::vector<double>& starts = trace.sample_start_us;
    if (!starts.empty() && (!row_.time_us || starts.size() != row_.time_us->samples.size())) {
      fail("trace.sample_start_us", "not as many as the time samples");
    }
    if (!std::is_sorted(starts.begin(), starts.end())) {
      fail("trace.sample_start_us", "are not in order");
    }
    not_negative("trace.start_unix_us", OptInt(trace.start_unix_us));
    if (!starts.empty()) not_negative("trace.sample_start_us", OptDouble(starts.front()));
    for (const TracePoint& point : trace.power_w) {
      not_negative("trace.power_w", OptDouble(std::min(point.at_us, point.value)));
    }
  }

  static constexpr double kSampleError = 1e-9;
  static constexpr double kRateError = 1e-6;
  const Row& row_;
  std::string_view place_;
};

}  // namespace

void check_row(const Row& row, std::string_view place) {
  RowCheck(row, place).run();
}

void check_record(const Record& record, std::string_view place) {
  const std::string prefix = place.empty() ? "" : std::string(place) + ": ";
  std::set<std::string_view> devices;
  for (const DeviceInfo& device : record.environment.devices) devices.insert(device.device);
  std::set<std::tuple<std::string_view, std::string_view, int>> seen;
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    const Row& row = record.rows[i];
    if (!devices.contains(row.device)) {
      throw UsageError(prefix + "rows[" + std::to_string(i) + "].device: \"" +
                       printable(row.device, 60) + "\" is not among environment.devices");
    }
    if (!seen.emplace(row.case_id, row.device, row.round).second) {
      throw UsageError(prefix + "rows[" + std::to_string(i) + "].case: \"" +
                       printable(row.case_id) + "\" on " + printable(row.device, 60) + ", round " +
                       std::to_string(row.round) + ", stands twice");
    }
  }
}

}  // namespace rooflash
