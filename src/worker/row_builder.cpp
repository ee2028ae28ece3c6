#include <string>
#include <utility>

#include "core/error.hpp"
#include "kernel.hpp"
#include "model/cost.hpp"
#include "model/gpu_spec.hpp"
#include "model/predict.hpp"
#include "model/roofline.hpp"
#include "registry.hpp"
#include "sweep/repro.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

// Predicted bytes and time, where the card is known and the kernel has a variant for it. A card or
// kernel that cannot run the case has none.
void add_prediction(Row& row, const Kernel& kernel, const CaseRequest& request,
                    const DeviceInfo& device) {
  if (const std::string reason = no_model(kernel); !reason.empty()) {
    for (const char* field : {"sm_l2_bytes", "hbm_bytes", "time_us"}) {
      row.missing[std::string("model.predicted_") + field] = reason;
    }
    return;
  }
  const GpuSpec* spec = find_gpu_by_name(device.name);
  if (spec == nullptr ||
      find_variant(kernel, request.problem, spec->compute_capability, nullptr) == nullptr) {
    return;
  }
  const std::int64_t sram =
      request.options.sram_bytes > 0 ? request.options.sram_bytes : spec->smem_per_block_bytes;
  try {
    const Traffic traffic = kernel.traffic(request.problem, kernel.tile(request.problem, sram));
    const Prediction prediction = predict(request.problem, traffic, *spec);
    row.model.predicted_sm_l2_bytes = prediction.sm_l2_bytes;
    row.model.predicted_hbm_bytes = prediction.hbm_bytes;
    row.model.predicted_time_us = prediction.time_us;
  } catch (const Error& error) {
    row.missing["model.predicted_time_us"] = error.what();
  }
}

}  // namespace

Row start_row(const CaseRequest& request, const DeviceInfo& device) {
  const Problem& problem = request.problem;
  Row row;
  row.problem = problem;
  // Another SRAM is another case.
  if (request.options.sram_bytes > 0) {
    row.problem.options["sram"] = std::to_string(request.options.sram_bytes);
  }
  row.case_id = case_id(request.kernel, row.problem);
  row.definition_hash = definition_hash(request.kernel, row.problem);
  row.kernel = request.kernel;
  row.device = device.device;
  row.gpu = device.name;
  row.round = request.round;
  row.simulated = device.simulated;
  row.model = model_figures(problem);
  row.repro = repro_command(request.kernel, row.problem, device.device);
  const Kernel* kernel = find_kernel(request.kernel);
  if (kernel == nullptr) return row;
  row.provider = kernel->provider;
  const std::int64_t workspace =
      kernel->workspace_bytes == nullptr ? 0 : kernel->workspace_bytes(problem);
  row.memory.workspace_bytes = workspace;
  row.memory.peak_bytes = tensor_bytes(problem) + workspace;
  add_prediction(row, *kernel, request, device);
  return row;
}

void finish_row(Row& row, const Ceilings& ceilings) {
  if (!row.time_us) return;
  const double us = row.time_us->median;
  Derived& derived = row.derived;
  derived.tflops = row.model.flops / us * 1e-6;
  const Counters& counters = row.counters;
  if (counters.tensor_ops) derived.hardware_tflops = *counters.tensor_ops / us * 1e-6;
  if (!counters.hbm_read_bytes || !counters.hbm_write_bytes) return;
  const double hbm_bytes = *counters.hbm_read_bytes + *counters.hbm_write_bytes;
  derived.hbm_gbps = hbm_bytes / us * 1e-3;
  if (!(hbm_bytes > 0)) return;
  derived.intensity_flop_per_byte = row.model.flops / hbm_bytes;
  const std::string dtype(to_string(row.problem.dtype));
  const auto peak = ceilings.gemm_tflops.find(dtype);
  if (peak == ceilings.gemm_tflops.end() || !ceilings.hbm_copy_gbps) {
    row.missing["derived.roof_pct"] = "the HBM or the " + dtype + " roof of the device is unknown";
    return;
  }
  row.missing.erase("derived.roof_pct");
  derived.roof_pct = roof_pct(*derived.tflops, *derived.intensity_flop_per_byte,
                              *ceilings.hbm_copy_gbps, peak->second);
}

void explain_missing(Row& row) {
  if (row.status != Status::ok) return;  // the row's own reason says it
  const auto explain = [&](const std::string& path, bool has_value, const std::string& reason) {
    const std::string parent = path.substr(0, path.find('.'));
    if (!has_value && !row.missing.contains(parent)) row.missing.try_emplace(path, reason);
  };
  const bool timed = row.time_us.has_value();
  const auto measured = [&](const std::string& path, bool has_value, const std::string& reason) {
    explain(path, has_value,
            row.simulated ? "simulated device" : (timed ? reason : "the case was not timed"));
  };
  explain("time_us", timed, "only verification was asked for");
  measured("clock_mhz", row.clock_mhz.has_value(), "no clock stamps");
  measured("cycles.median", row.cycles_median.has_value(), "no clock stamps");
  measured("power_w", row.power_w.has_value(), "NVML does not tell");
  measured("temperature_c", row.temperature_c.has_value(), "NVML does not tell");
  measured("kernels_run", !row.kernels_run.empty(), "no launch was recorded");

  if (row.problem.dtype == DType::e4m3) {
    measured("quantize_us", row.quantize_us.has_value(), "quantising was not timed");
    measured("time_with_quantize_us", row.time_with_quantize_us.has_value(),
             "quantising was not timed");
    explain("saturated_elements", row.saturated_elements.has_value(), "simulated device");
  }
  measured("energy", row.energy.has_value(),
           "needs launches back to back for a second: --power sustained");

  const Resources& used = row.resources;
  const std::pair<const char*, bool> resources[] = {{"registers", used.registers.has_value()},
                                                    {"spill_bytes", used.spill_bytes.has_value()},
                                                    {"smem_bytes", used.smem_bytes.has_value()},
                                                    {"threads", used.threads.has_value()},
                                                    {"grid", used.grid.has_value()},
                                                    {"waves", used.waves.has_value()}};
  if (row.simulated) row.missing.try_emplace("resources", "simulated device");
  explain("resources.code_bytes", used.code_bytes.has_value(),
          "the executable carries no uncompressed cubin of this kernel");
  for (const auto& [name, has_value] : resources) {
    explain(std::string("resources.") + name, has_value,
            (row.provider == "builtin" ? "the CUDA runtime" : row.provider) + " does not tell");
  }
  const ModelFigures& model = row.model;
  const std::string unknown = "there is no model of this kernel on this card";
  explain("model.predicted_sm_l2_bytes", model.predicted_sm_l2_bytes.has_value(), unknown);
  explain("model.predicted_hbm_bytes", model.predicted_hbm_bytes.has_value(), unknown);
  explain("model.predicted_time_us", model.predicted_time_us.has_value(), unknown);

  const std::string dtype(to_string(row.problem.dtype));
  if (row.counters.status == "ok") {
    const std::string uncounted = "no tensor operations with " + dtype + " inputs are counted";
    explain("counters.tensor_ops", row.counters.tensor_ops.has_value(), uncounted);
    explain("counters.tensor_pipe_pct", row.counters.tensor_pipe_pct.has_value(), uncounted);
  }
  const Derived& derived = row.derived;
  const std::pair<const char*, bool> rates[] = {
      {"tflops", derived.tflops.has_value()},
      {"hardware_tflops", derived.hardware_tflops.has_value()},
      {"hbm_gbps", derived.hbm_gbps.has_value()},
      {"intensity_flop_per_byte", derived.intensity_flop_per_byte.has_value()},
      {"roof_pct", derived.roof_pct.has_value()}};
  for (const auto& [name, has_value] : rates) {
    measured(std::string("derived.") + name, has_value,
             "counters were not read (" + row.counters.status + ")");
  }
}

void flag_implausible(Row& row, const GpuSpec& spec, int sm_count) {
  if (!row.time_us) return;
  bool implausible = row.derived.hbm_gbps.value_or(0) > spec.hbm_gbps;
  const auto rate =
      spec.tensor_ops_per_clock_per_sm.find(std::string(to_string(row.problem.dtype)));
  if (rate != spec.tensor_ops_per_clock_per_sm.end() && row.cycles_median) {
    const double possible = rate->second * sm_count * *row.cycles_median;
    implausible = implausible || row.model.flops > possible;
  }
  if (implausible) row.flags.emplace_back("implausible");
}

}  // namespace rooflash
