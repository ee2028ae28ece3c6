// The JSON shape of the record, schema 1: every key, once. See record/json_io.hpp.
#pragma once

#include "record/json_io.hpp"

namespace rooflash {

inline const Choices kCounterStatuses = {"ok",         "not_requested", "no_permission", "busy",
                                         "other_tool", "unavailable",   "invalid"};

template <class Io>
void describe(Io& io, Described<Io, Problem> problem) {
  io("pass", problem.pass);
  io("dtype", problem.dtype);
  io("batch", problem.batch);
  io("heads_q", problem.heads_q);
  io("heads_kv", problem.heads_kv);
  io("seqlen_q", problem.seqlen_q);
  io("seqlen_kv", problem.seqlen_kv);
  io("headdim", problem.headdim);
  io("headdim_v", problem.headdim_v);
  io("mask", problem.mask.kind);
  io("align", problem.mask.align);
  // [left, right], null for the other masks; -1 is an unbounded side.
  std::optional<std::array<std::int64_t, 2>> window;
  if (problem.mask.kind == MaskKind::window) window = {problem.mask.left, problem.mask.right};
  io("window", window);
  if constexpr (Io::kReads) {
    if (window.has_value() != (problem.mask.kind == MaskKind::window)) {
      fail_at(Place{&io.place(), "window"}, "set if and only if mask is \"window\"");
    }
    if (window) {
      problem.mask.left = (*window)[0];
      problem.mask.right = (*window)[1];
    }
  }
  io("distribution", problem.distribution);
  io("options", problem.options);
}

template <class Io>
void describe(Io& io, Described<Io, VerifyResult> verify) {
  io.choice("status", verify.status, {"passed", "reduced", "failed", "skipped"});
  io("shape", verify.shape);
  io("max_abs_err", verify.max_abs_err);
  io("rms_err", verify.rms_err);
  io("rel_err", verify.rel_err);
  io("tolerance_max", verify.tolerance_max);
  io("tolerance_rms", verify.tolerance_rms);
  io("rows_checked", verify.rows_checked);
  io("worst", verify.worst);
  io.optional("unquantized_rms_err", verify.unquantized_rms_err);
  io.optional("unquantized_rel_err", verify.unquantized_rel_err);
}

template <class Io>
void describe(Io& io, Described<Io, ModelFigures> model) {
  io("convention", model.convention);
  io("pairs", model.pairs);
  io("flops", model.flops);
  io("compulsory_bytes", model.compulsory_bytes);
  io("predicted_sm_l2_bytes", model.predicted_sm_l2_bytes);
  io("predicted_hbm_bytes", model.predicted_hbm_bytes);
  io("predicted_time_us", model.predicted_time_us);
}

template <class Io>
void describe(Io& io, Described<Io, Memory> memory) {
  io("workspace_bytes", memory.workspace_bytes);
  io("peak_bytes", memory.peak_bytes);
  io("needed_bytes", memory.needed_bytes);
  io("free_bytes", memory.free_bytes);
}

template <class Io>
void describe(Io& io, Described<Io, Resources> resources) {
  io("registers", resources.registers);
  io("spill_bytes", resources.spill_bytes);
  io("smem_bytes", resources.smem_bytes);
  io("threads", resources.threads);
  io("grid", resources.grid);
  io("waves", resources.waves);
  io("code_bytes", resources.code_bytes);
  io.optional("plan_ms", resources.plan_ms);
}

template <class Io>
void describe(Io& io, Described<Io, TimeUs> time) {
  io("median", time.median);
  std::array<double, 2> ci95{time.ci95_low, time.ci95_high};
  io("ci95", ci95);
  if constexpr (Io::kReads) {
    time.ci95_low = ci95[0];
    time.ci95_high = ci95[1];
  }
  io("min", time.min);
  io("n", time.n);
  io("samples", time.samples);
  io.choice("l2", time.l2, {"cold", "warm"});
  io.choice("power", time.power, {"burst", "sustained"});
  io.choice("timer", time.timer, {"event", "graph", "cupti", "model"});
  io.choice("stopped_by", time.stopped_by, {"ci", "max_time", "max_samples", "model"});
  io.optional("warmup_launches", time.warmup_launches);
}

template <class Io>
void describe(Io& io, Described<Io, Clock> clock) {
  io("median", clock.median);
  io("min", clock.min);
  io("max", clock.max);
  io("samples", clock.samples);
}

template <class Io>
void describe(Io& io, Described<Io, Counters> counters) {
  io.choice("status", counters.status, kCounterStatuses);
  io("reason", counters.reason);
  io("hbm_read_bytes", counters.hbm_read_bytes);
  io("hbm_write_bytes", counters.hbm_write_bytes);
  io("sm_l2_read_bytes", counters.sm_l2_read_bytes);
  io("sm_l2_write_bytes", counters.sm_l2_write_bytes);
  io("tensor_ops", counters.tensor_ops);
  io("tensor_pipe_pct", counters.tensor_pipe_pct);
  io("xu_pipe_pct", counters.xu_pipe_pct);
  io("gpu_time_us", counters.gpu_time_us);
  io("sm_clock_mhz", counters.sm_clock_mhz);
  io.optional("l2_read_bytes", counters.l2_read_bytes);
}

template <class Io>
void describe(Io& io, Described<Io, Energy> energy) {
  io("joules_per_launch", energy.joules_per_launch);
  io("pj_per_flop", energy.pj_per_flop);
  io("window_s", energy.window_s);
  io("launches", energy.launches);
}

template <class Io>
void describe(Io& io, Described<Io, Derived> derived) {
  io("tflops", derived.tflops);
  io("hardware_tflops", derived.hardware_tflops);
  io("hbm_gbps", derived.hbm_gbps);
  io("intensity_flop_per_byte", derived.intensity_flop_per_byte);
  io("roof_pct", derived.roof_pct);
}

template <class Io>
void describe(Io& io, Described<Io, TracePhase> phase) {
  io("name", phase.name);
  io("start_us", phase.start_us);
  io("end_us", phase.end_us);
}

template <class Io>
void describe(Io& io, Described<Io, TracePoint> point) {
  io("at_us", point.at_us);
  io("value", point.value);
}

template <class Io>
void describe(Io& io, Described<Io, Trace> trace) {
  io("start_unix_us", trace.start_unix_us);
  io("phases", trace.phases);
  io("sample_start_us", trace.sample_start_us);
  io("power_w", trace.power_w);
}

template <class Io>
void describe(Io& io, Described<Io, Row> row) {
  io("case", row.case_id);
  io("definition_hash", row.definition_hash);
  io("kernel", row.kernel);
  io("provider", row.provider);
  io("device", row.device);
  io("gpu", row.gpu);
  io("round", row.round);
  io("problem", row.problem);
  io("status", row.status);
  io("reason", row.reason);
  io("simulated", row.simulated);
  io("verify", row.verify);
  io("model", row.model);
  io("memory", row.memory);
  io("resources", row.resources);
  io("time_us", row.time_us);
  io.optional("quantize_us", row.quantize_us);
  io.optional("time_with_quantize_us", row.time_with_quantize_us);
  io.optional("saturated_elements", row.saturated_elements);
  io.object("cycles", [&](auto& cycles) { cycles("median", row.cycles_median); });
  io("clock_mhz", row.clock_mhz);
  io("power_w", row.power_w);
  io("temperature_c", row.temperature_c);
  io("throttle", row.throttle);
  io("flags", row.flags);
  io("counters", row.counters);
  io("derived", row.derived);
  io("kernels_run", row.kernels_run);
  io("repro", row.repro);
  io("missing", row.missing);
  io.optional("energy", row.energy);
  io.optional("trace", row.trace);
}

template <class Io>
void describe(Io& io, Described<Io, DeviceInfo> device) {
  io("device", device.device);
  io("name", device.name);
  io("uuid_hash", device.uuid_hash);
  io("simulated", device.simulated);
  io("sm_count", device.sm_count);
  io("compute_capability", device.compute_capability);
  io("sm_clock_max_mhz", device.sm_clock_max_mhz);
  io("memory_clock_max_mhz", device.memory_clock_max_mhz);
  io("memory_bytes", device.memory_bytes);
  io("l2_bytes", device.l2_bytes);
  io("power_limit_w", device.power_limit_w);
  io("ecc", device.ecc);
  io("mig", device.mig);
  io("other_processes", device.other_processes);
}

template <class Io>
void describe(Io& io, Described<Io, Environment> environment) {
  io("host_hash", environment.host_hash);
  io("argv", environment.argv);
  io("date", environment.date);
  io("driver", environment.driver);
  io("cuda", environment.cuda);
  io("cudnn", environment.cudnn);
  io("visible_devices", environment.visible_devices);
  io("devices", environment.devices);
  io.optional("cudnn_hash", environment.cudnn_hash);
}

template <class Io>
void describe(Io& io, Described<Io, UnitRoofs> units) {
  io("l2_read_gbps", units.l2_read_gbps);
  io("smem_read_gbps", units.smem_read_gbps);
  io("tensor_tflops", units.tensor_tflops);
  io("mma_sync_tflops", units.mma_sync_tflops);
  io("exp_gops", units.exp_gops);
  io("fp32_tflops", units.fp32_tflops);
  io("clock_mhz", units.clock_mhz);
}

template <class Io>
void describe(Io& io, Described<Io, LaunchCosts> launch) {
  io("event_us", launch.event_us);
  io("stream_us", launch.stream_us);
  io("graph_us", launch.graph_us);
  io("host_us", launch.host_us);
}

template <class Io>
void describe(Io& io, Described<Io, SustainedRoofs> sustained) {
  io("hbm_copy_gbps", sustained.hbm_copy_gbps);
  io("gemm_tflops", sustained.gemm_tflops);
  io("tensor_tflops", sustained.tensor_tflops);
  io("clock_mhz", sustained.clock_mhz);
  io("power_w", sustained.power_w);
}

template <class Io>
void describe(Io& io, Described<Io, Ceilings> ceilings) {
  io("device", ceilings.device);
  io.choice("source", ceilings.source, {"measured", "model"});
  io("hbm_copy_gbps", ceilings.hbm_copy_gbps);
  io("hbm_read_gbps", ceilings.hbm_read_gbps);
  io("hbm_write_gbps", ceilings.hbm_write_gbps);
  io("gemm_tflops", ceilings.gemm_tflops);
  io.optional("units", ceilings.units);
  io.optional("launch", ceilings.launch);
  io.optional("sustained", ceilings.sustained);
}

template <class Io>
void describe(Io& io, Described<Io, Datasheet> datasheet) {
  io("gpu", datasheet.gpu);
  io("hbm_gbps", datasheet.hbm_gbps);
  io("tensor_tflops", datasheet.tensor_tflops);
  io("source", datasheet.source);
}

template <class Io>
void describe(Io& io, Described<Io, Tool> tool) {
  io("version", tool.version);
  io("commit", tool.commit);
  io("dirty", tool.dirty);
  io("build", tool.build);
}

template <class Io>
void describe(Io& io, Described<Io, Record> record) {
  io("schema", record.schema);
  io("tool", record.tool);
  io("environment", record.environment);
  io("ceilings", record.ceilings);
  io("datasheet", record.datasheet);
  io("suite", record.suite);
  io("seed", record.seed);
  io("complete", record.complete);
  io("rows", record.rows);
}

}  // namespace rooflash
