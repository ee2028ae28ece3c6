// The record: rows and the environment they were measured in. Plain data; record/ reads and writes
// it as JSON (docs/formats.md), report/ and gate/ see nothing else. Field names equal the JSON
// keys.
//
// A value that was not measured is an empty optional, never 0; `Row::missing` says why, keyed by
// the field's JSON path ("power_w", "counters.hbm_read_bytes").
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

using OptDouble = std::optional<double>;
using OptInt = std::optional<std::int64_t>;

// Never merged. Only `ok` rows carry times and may be ranked or gated.
enum class Status { ok, unsupported, wrong, failed, oom, crashed, timeout, not_run };
std::string_view to_string(Status status);
std::optional<Status> parse_status(std::string_view text);

struct VerifyResult {
  std::string status = "skipped";  // passed | reduced | failed | skipped
  std::string shape;               // the shape it ran at where `reduced`, as in a case id; else ""
  OptDouble max_abs_err;           // of O against the fp64 reference, over the rows checked that
                                   // see a key; empty where none does or O is not finite
  OptDouble rms_err;
  OptDouble rel_err;  // ||O - ref|| / ||ref||
  OptDouble tolerance_max;
  OptDouble tolerance_rms;
  std::string rows_checked;  // "all", or "192 of 262144: first, last, tile edges, random"
  std::string worst;         // place and values of the largest error
  // Of e4m3 problems: the same errors against the fp64 reference on the inputs before they were
  // quantised.
  OptDouble unquantized_rms_err = {};
  OptDouble unquantized_rel_err = {};
};

struct ModelFigures {
  std::string convention;  // of the FLOP count
  std::int64_t pairs = 0;  // unmasked (query, key) pairs per head
  double flops = 0;        // exact up to 2^53
  std::int64_t compulsory_bytes = 0;
  OptDouble predicted_sm_l2_bytes;
  OptDouble predicted_hbm_bytes;
  OptDouble predicted_time_us;
};

struct Memory {
  OptInt workspace_bytes;
  OptInt peak_bytes;    // workspace and tensors together
  OptInt needed_bytes;  // on `oom` rows: what the case needs in all ...
  OptInt free_bytes;    // ... and what the device has free
};

// Static figures of the case's main kernel (the one with the most tensor work).
struct Resources {
  OptInt registers;  // per thread
  OptInt spill_bytes;
  OptInt smem_bytes;  // static and dynamic, per block
  OptInt threads;     // per block
  OptInt grid;        // blocks in all
  OptDouble waves;    // grid / (blocks resident on the whole GPU)
  OptInt code_bytes;
  OptDouble plan_ms = {};  // to build a vendor's plan, before anything is timed
};

struct TimeUs {
  double median = 0;
  double ci95_low = 0;  // JSON: ci95: [low, high]
  double ci95_high = 0;
  double min = 0;
  std::int64_t n = 0;
  std::vector<double> samples;  // in the order taken
  std::string l2;               // cold | warm
  std::string power;            // burst | sustained
  std::string timer;            // event | graph | cupti | model
  std::string stopped_by;       // ci | max_time | max_samples | model
  OptInt warmup_launches = {};  // before the first sample
};

// The times of a row that are judged and followed each by itself, by the names of their fields.
enum class Measure { time_us, quantize_us };
std::string_view to_string(Measure measure);

struct Clock {
  OptDouble median;
  OptDouble min;
  OptDouble max;
  std::vector<double> samples;  // SM clock of each time sample, parallel to TimeUs::samples
};

struct Counters {
  std::string status = "not_requested";  // docs/formats.md lists the values
  std::string reason;
  OptDouble hbm_read_bytes;
  OptDouble hbm_write_bytes;
  OptDouble sm_l2_read_bytes;
  OptDouble sm_l2_write_bytes;
  OptDouble tensor_ops;
  OptDouble tensor_pipe_pct;
  OptDouble xu_pipe_pct;
  OptDouble gpu_time_us;
  OptDouble sm_clock_mhz;
  OptDouble l2_read_bytes = {};  // asked of L2 where requests of several SMs were merged on the way
};

// Of the board, over launches back to back.
struct Energy {
  double joules_per_launch = 0;
  double pj_per_flop = 0;  // picojoules a model FLOP
  double window_s = 0;
  std::int64_t launches = 0;  // in the window
};

struct Derived {
  OptDouble tflops;                   // model FLOPs / median time
  OptDouble hardware_tflops;          // counted tensor operations / median time
  OptDouble hbm_gbps;                 // counted HBM bytes / median time
  OptDouble intensity_flop_per_byte;  // model FLOPs / counted HBM bytes
  OptDouble roof_pct;                 // of the lowest roof at that intensity
};

// When things happened, in us since `start_unix_us`. Steps of the system's clock during a case do
// not show in it.
struct TracePhase {
  std::string name;  // setup | verify | warmup | timed | counters
  double start_us = 0;
  double end_us = 0;
};

struct TracePoint {
  double at_us = 0;
  double value = 0;
};

struct Trace {
  std::int64_t start_unix_us = 0;  // when the case began, since 1970 (UTC)
  std::vector<TracePhase> phases;  // in order; a phase may come twice
  // Start of each timed sample, parallel to TimeUs::samples; empty where there are none.
  std::vector<double> sample_start_us;
  std::vector<TracePoint> power_w;
};

struct Row {
  std::string case_id;  // JSON: "case"
  std::string definition_hash;
  std::string kernel;
  std::string provider = "builtin";
  std::string device;  // "cuda:0", "sim:h200"
  std::string gpu;     // "NVIDIA H200"
  int round = 0;
  Problem problem;
  Status status = Status::not_run;
  std::string reason;
  bool simulated = false;
  VerifyResult verify;
  ModelFigures model;
  Memory memory;
  Resources resources;
  std::optional<TimeUs> time_us;  // only on `ok` rows
  // Of e4m3 problems: to quantise bf16 inputs, which is no part of time_us; the sum of the medians;
  // and how many elements were beyond the largest number.
  std::optional<TimeUs> quantize_us = {};
  OptDouble time_with_quantize_us = {};
  OptInt saturated_elements = {};
  OptDouble cycles_median;  // JSON: cycles: {median}
  std::optional<Clock> clock_mhz;
  OptDouble power_w;
  OptDouble temperature_c;
  std::vector<std::string> throttle;
  std::vector<std::string> flags;  // clock_unsettled | implausible | l2_resident | shared_gpu | ...
  Counters counters;
  Derived derived;
  std::vector<std::string> kernels_run;  // symbols that really ran
  std::string repro;                     // command line that runs this one case
  std::map<std::string, std::string> missing;
  std::optional<Energy> energy;
  std::optional<Trace> trace;
};

struct DeviceInfo {
  std::string device;  // "cuda:0", "sim:h200"
  std::string name;
  std::string uuid_hash;
  bool simulated = false;
  OptInt sm_count;
  OptInt compute_capability;  // 90 for 9.0
  OptDouble sm_clock_max_mhz;
  OptDouble memory_clock_max_mhz;
  OptInt memory_bytes;
  OptInt l2_bytes;
  OptDouble power_limit_w;
  std::optional<bool> ecc;
  std::optional<bool> mig;
  OptInt other_processes;  // compute processes of others on the GPU at the start
};

struct Environment {
  std::string host_hash;
  std::vector<std::string> argv;
  std::string date;  // ISO 8601, UTC
  std::string driver;
  std::string cuda;   // toolkit the worker was built with
  std::string cudnn;  // that the rows of `cudnn` ran from; "" where there is none
  std::string visible_devices;
  std::vector<DeviceInfo> devices;
  std::optional<std::string> cudnn_hash = {};  // of the files of that cuDNN
};

// Roofs of the units inside the GPU, by own loops.
struct UnitRoofs {
  OptDouble l2_read_gbps;                         // from L2 into the SMs
  OptDouble smem_read_gbps;                       // all SMs together
  std::map<std::string, double> tensor_tflops;    // by the fastest instructions, by type
  std::map<std::string, double> mma_sync_tflops;  // by mma.sync, by type
  OptDouble exp_gops;                             // 10^9 exponentials a second
  OptDouble fp32_tflops;                          // fused multiply-adds, without tensor cores
  std::map<std::string, double> clock_mhz;        // SM clock meanwhile: "gemm.bf16", "tensor.bf16"
};

// What a launch costs before it does anything, in microseconds.
struct LaunchCosts {
  OptDouble event_us;   // between two events around an empty kernel: the least a time_us can be
  OptDouble stream_us;  // of each further kernel in a full stream
  OptDouble graph_us;   // of each further kernel in a graph
  OptDouble host_us;    // from the call until the host knows that the kernel has ended
};

// The same roofs once the clock has settled under load, by the names above.
struct SustainedRoofs {
  OptDouble hbm_copy_gbps;
  std::map<std::string, double> gemm_tflops;
  std::map<std::string, double> tensor_tflops;
  std::map<std::string, double> clock_mhz;  // "hbm_copy", "gemm.bf16", "tensor.bf16"
  std::map<std::string, double> power_w;
};

// Measured roofs of one device; `datasheet` roofs come from suites/gpus.json at report time.
struct Ceilings {
  std::string device;
  std::string source;  // measured | model
  OptDouble hbm_copy_gbps;
  OptDouble hbm_read_gbps;
  OptDouble hbm_write_gbps;
  std::map<std::string, double> gemm_tflops;  // by dtype
  std::optional<UnitRoofs> units = {};
  std::optional<LaunchCosts> launch = {};
  std::optional<SustainedRoofs> sustained = {};
};

struct Datasheet {
  std::string gpu;
  OptDouble hbm_gbps;
  std::map<std::string, double> tensor_tflops;  // dense, by dtype
  std::string source;
};

struct Tool {
  std::string version;
  std::string commit;
  bool dirty = false;
  std::string build;  // build type, compiler, CUDA architectures
};

struct Record {
  int schema = 1;
  Tool tool;
  Environment environment;
  std::vector<Ceilings> ceilings;    // one per device
  std::vector<Datasheet> datasheet;  // one per known GPU model among the devices
  std::string suite;
  std::uint64_t seed = 0;
  bool complete = true;  // false after an interruption
  std::vector<Row> rows;
};

}  // namespace rooflash
