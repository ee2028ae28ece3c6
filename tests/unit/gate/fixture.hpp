// Records with made-up numbers for the tests of the gate.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash::fixture {

inline constexpr char kMeasured[] = "cuda:0";
inline constexpr char kSimulated[] = "sim:h200";

inline Problem problem(std::int64_t seqlen) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = seqlen;
  return p;
}

inline Row row(const std::string& kernel, std::int64_t seqlen, double time_us, int round = 0,
               const std::string& device = kMeasured) {
  Row r;
  r.kernel = kernel;
  r.problem = problem(seqlen);
  r.case_id = case_id(kernel, r.problem);
  r.definition_hash = definition_hash(kernel, r.problem);
  r.device = device;
  r.simulated = device.starts_with("sim:");
  r.gpu = "NVIDIA H200";
  r.round = round;
  r.status = Status::ok;
  r.verify.status = "passed";
  r.model.convention = "exact-pairs-v1";
  r.model.flops = 1e12;
  r.model.compulsory_bytes = 1 << 20;
  TimeUs time;
  time.median = time.ci95_low = time.ci95_high = time.min = time_us;
  time.samples = {time_us};
  time.n = 1;
  time.l2 = "cold";
  time.power = "burst";
  time.timer = r.simulated ? "model" : "event";
  time.stopped_by = r.simulated ? "model" : "ci";
  r.time_us = time;
  r.repro = "rooflash run --kernel " + kernel;
  return r;
}

inline Record record(std::vector<Row> rows) {
  Record made;
  made.environment.driver = "580.1";
  made.rows = std::move(rows);
  DeviceInfo device;
  device.device = kMeasured;
  device.name = "NVIDIA H200";
  device.sm_count = 132;
  made.environment.devices = {device};
  device.device = kSimulated;
  device.simulated = true;
  made.environment.devices.push_back(device);
  return made;
}

// Rounds of one case whose medians wander by +-0.5 % around `time_us`.
inline std::vector<Row> rounds(const std::string& kernel, std::int64_t seqlen, double time_us,
                               int n) {
  static constexpr double kWander[] = {0.001, -0.004, 0.003, 0.005, -0.002, -0.005, 0.004, 0.0};
  std::vector<Row> rows;
  for (int i = 0; i < n; ++i) {
    rows.push_back(row(kernel, seqlen, time_us * (1 + kWander[i % 8]), i));
  }
  return rows;
}

// Rounds of an e4m3 case whose attention takes `time_us` and quantising `quantize_us`, each with a
// wander of its own.
inline std::vector<Row> quantized_rounds(std::int64_t seqlen, double time_us, double quantize_us,
                                         int n) {
  static constexpr double kWander[] = {-0.003, 0.002, 0.005, -0.001, 0.004, 0.0, -0.005, 0.003};
  std::vector<Row> rows = rounds("fp8", seqlen, time_us, n);
  for (Row& one : rows) {
    one.problem.dtype = DType::e4m3;
    one.case_id = case_id(one.kernel, one.problem);
    one.definition_hash = definition_hash(one.kernel, one.problem);
    TimeUs& time = one.quantize_us.emplace(*one.time_us);
    time.median = time.min = quantize_us * (1 + kWander[one.round % 8]);
    time.ci95_low = time.ci95_high = time.median;
    time.samples = {time.median};
    one.time_with_quantize_us = one.time_us->median + time.median;
  }
  return rows;
}

inline Record quantized(double time_us, double quantize_us, int n = 7) {
  return record(quantized_rounds(1024, time_us, quantize_us, n));
}

inline void drop_quantizing(Row& row, const std::string& reason) {
  row.quantize_us.reset();
  row.time_with_quantize_us.reset();
  row.missing["quantize_us"] = row.missing["time_with_quantize_us"] = reason;
}

inline Record measured(double time_us, int n = 7) {
  return record(rounds("fa2", 1024, time_us, n));
}

inline Record simulated(double time_us) {
  return record({row("fa2", 1024, time_us, 0, kSimulated)});
}

}  // namespace rooflash::fixture
