// Records with made-up numbers for the tests of the report. They say so in every place a reader
// could take them for measurements.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>

#include "core/record.hpp"

namespace rooflash::fixture {

inline constexpr char kGpu[] = "Fixture GPU (made-up numbers)";

inline Problem problem(DType dtype, std::int64_t headdim, std::int64_t seqlen, bool causal) {
  Problem p;
  p.dtype = dtype;
  p.batch = 16384 / seqlen;
  p.heads_q = p.heads_kv = 2048 / headdim;
  p.seqlen_q = p.seqlen_kv = seqlen;
  p.headdim = p.headdim_v = headdim;
  if (causal) p.mask.kind = MaskKind::causal;
  return p;
}

// A row that is ok. `reread` is HBM bytes over compulsory bytes.
inline Row row(const std::string& kernel, const Problem& p, double tflops, double reread,
               bool simulated) {
  Row r;
  r.kernel = kernel;
  r.problem = p;
  r.case_id = case_id(kernel, p);
  r.definition_hash = "0123456789abcdef";
  r.device = simulated ? "sim:fixture" : "cuda:0";
  r.gpu = kGpu;
  r.status = Status::ok;
  r.simulated = simulated;
  const double s = static_cast<double>(p.seqlen_kv);
  const bool causal = p.mask.kind == MaskKind::causal;
  r.model.convention = "exact-pairs-v1";
  r.model.pairs = causal ? p.seqlen_kv * (p.seqlen_kv + 1) / 2 : p.seqlen_kv * p.seqlen_kv;
  r.model.flops = 4.0 * static_cast<double>(p.batch * p.heads_q * r.model.pairs * p.headdim);
  r.model.compulsory_bytes = tensor_bytes(p);
  const double bytes = reread * static_cast<double>(r.model.compulsory_bytes);
  r.model.predicted_hbm_bytes = bytes;
  const double us = r.model.flops / tflops / 1e6;
  r.model.predicted_time_us = us * 1.1;
  TimeUs time;
  time.median = us;
  time.ci95_low = us * 0.97;
  time.ci95_high = us * 1.03;
  time.min = us * 0.96;
  time.l2 = "cold";
  time.power = "burst";
  time.timer = simulated ? "model" : "event";
  time.stopped_by = simulated ? "model" : "ci";
  if (simulated) {
    time.samples = {us};
    time.ci95_low = time.ci95_high = time.min = us;
  } else {
    for (int i = 0; i < 12; ++i) time.samples.push_back(us * (1 + 0.003 * (i % 5)));
    r.power_w = 612.0;
    r.temperature_c = 55.0;
    r.clock_mhz = Clock{1750.0, 1700.0, 1800.0, {}};
    r.resources = {168, 0, 98304, 128, 2048, 7.8, 40960};
    r.counters.status = "ok";
    r.counters.hbm_read_bytes = 0.75 * bytes;
    r.counters.hbm_write_bytes = 0.25 * bytes;
    r.counters.tensor_ops = r.model.flops * (causal ? 1.0 + 64 / s : 1.0);
    r.derived.hbm_gbps = bytes / us / 1e3;
    r.derived.intensity_flop_per_byte = r.model.flops / bytes;
  }
  time.n = static_cast<std::int64_t>(time.samples.size());
  r.time_us = time;
  r.derived.tflops = tflops;
  r.derived.roof_pct = 100 * tflops / std::min(780.0, 4.284 * r.model.flops / bytes);
  r.verify.status = simulated ? "reduced" : "passed";
  r.verify.rows_checked = "all";
  r.verify.rel_err = (p.dtype == DType::bf16 ? 2.3e-3 : 2.9e-4) * (1 + 0.1 * std::log2(s / 512));
  r.verify.max_abs_err = 4 * *r.verify.rel_err;
  r.verify.rms_err = *r.verify.rel_err / 4;
  r.verify.tolerance_max = 14 * *r.verify.rel_err;
  r.verify.tolerance_rms = *r.verify.rel_err;
  r.memory.workspace_bytes =
      kernel == "naive" ? 4 * p.batch * p.heads_q * p.seqlen_q * p.seqlen_kv : 0;
  r.memory.peak_bytes = r.model.compulsory_bytes + *r.memory.workspace_bytes;
  r.repro = "rooflash run --kernel " + kernel + " --seqlen " + std::to_string(p.seqlen_kv);
  return r;
}

inline Row failure(const std::string& kernel, const Problem& p, Status status,
                   const std::string& reason) {
  Row r = row(kernel, p, 1, 1, false);
  r.status = status;
  r.reason = reason;
  r.time_us.reset();
  r.clock_mhz.reset();
  r.power_w.reset();
  r.temperature_c.reset();
  r.derived = {};
  r.counters = {};
  return r;
}

inline Record empty_record() {
  Record record;
  record.suite = "test fixture, made-up numbers";
  record.tool = {"0.1.0", "0123456789ab", false, "Release"};
  record.environment.argv = {"rooflash", "run", "--suite", "fixture"};
  record.environment.date = "2026-01-02T03:04:05Z";
  record.environment.driver = "580.00";
  record.environment.cuda = "13.0";
  record.environment.devices.resize(1);
  DeviceInfo& device = record.environment.devices[0];
  device.device = "cuda:0";
  device.name = kGpu;
  device.sm_count = 132;
  device.compute_capability = 90;
  device.memory_bytes = std::int64_t{140} << 30;
  const std::map<std::string, double> gemm{{"bf16", 780}, {"fp16", 785}};
  record.ceilings = {{"cuda:0", "measured", 4284.0, 4391.0, 4683.0, gemm}};
  record.datasheet = {{kGpu, 4800.0, {{"bf16", 989}, {"fp16", 989}}, "test fixture"}};
  return record;
}

// naive and fa2 over two dtypes, two head dims, six lengths, full and causal, all `ok` but three;
// then the first group once more as simulated rows where `with_simulated`.
inline Record sweep_record(bool with_simulated) {
  Record record = empty_record();
  const auto add = [&](bool simulated, DType dtype, std::int64_t headdim, bool causal) {
    for (std::int64_t seqlen = 512; seqlen <= 16384; seqlen *= 2) {
      const Problem p = problem(dtype, headdim, seqlen, causal);
      const double s = static_cast<double>(seqlen);
      const double naive = 22 * s / (s + 300) * (causal ? 0.5 : 1);
      const double fa2 = 0.0035 * static_cast<double>(headdim) * 1000 * s / (s + 900) *
                         (causal ? 0.8 : 1) * (dtype == DType::fp16 ? 1.02 : 1);
      record.rows.push_back(
          row("naive", p, naive, 1 + s / (2 * static_cast<double>(headdim)) * 4, simulated));
      record.rows.push_back(row("fa2", p, fa2, 1 + 0.02 * std::log2(s / 512), simulated));
    }
  };
  for (const DType dtype : {DType::bf16, DType::fp16}) {
    for (const std::int64_t headdim : {64, 128}) {
      for (const bool causal : {false, true}) add(false, dtype, headdim, causal);
    }
  }
  const Row oom = record.rows[10];
  record.rows[10] = failure("naive", oom.problem, Status::oom, "the scores do not fit");
  record.rows[10].memory.needed_bytes = std::int64_t{160} << 30;
  record.rows[10].memory.free_bytes = std::int64_t{139} << 30;
  record.rows[22] = failure("naive", record.rows[22].problem, Status::timeout, "over 15 s");
  record.rows[35] = failure("fa2", record.rows[35].problem, Status::wrong,
                            "max error 0.5 over the tolerance 0.004");
  record.rows[1].flags = {"clock_unsettled"};
  if (with_simulated) {
    DeviceInfo device;
    device.device = "sim:fixture";
    device.name = kGpu;
    device.simulated = true;
    record.environment.devices.push_back(device);
    record.ceilings.push_back(
        {"sim:fixture", "model", 4284.0, std::nullopt, std::nullopt, {{"bf16", 780}}});
    add(true, DType::bf16, 128, false);
    add(true, DType::bf16, 128, true);
  }
  return record;
}

// Text that breaks out of a page that does not escape it.
inline const std::string kHostile =
    "</script><script>window.hacked=1</script>\"><img src=x onerror=\"window.hacked=1\">'&"
    "\x01\x1b[31m\xE2\x80\xA8\xE2\x80\xAE\xE2\x80\x8B\xff{{style}}|`*_";

inline Record hostile_record() {
  Record record = empty_record();
  const Problem p = problem(DType::bf16, 128, 1024, false);
  Row bad = row("fa2", p, 300, 1.1, false);
  bad.kernel = bad.case_id = bad.provider = bad.device = bad.gpu = bad.repro = kHostile;
  bad.flags = bad.throttle = bad.kernels_run = {kHostile};
  bad.verify.rows_checked = bad.verify.worst = kHostile;
  bad.missing[kHostile] = kHostile;
  Row failed = failure("naive", p, Status::failed, kHostile);
  failed.problem.options[kHostile] = kHostile;
  record.rows = {row("naive", p, 20, 9, false), bad, failed};
  record.suite = record.tool.version = record.tool.build = kHostile;
  record.environment.driver = record.environment.date = record.environment.cuda = kHostile;
  record.environment.argv = {kHostile};
  record.environment.devices[0].name = kHostile;
  record.datasheet[0].source = kHostile;
  return record;
}

// Names of so many characters without a space.
inline Record long_names_record(std::size_t length) {
  Record record = empty_record();
  const std::string name(length, 'k');
  for (const char* const end : {"a", "b"}) {
    record.rows.push_back(row(name + end, problem(DType::bf16, 128, 1024, false), 100, 1.1, false));
    record.rows.push_back(row(name + end, problem(DType::bf16, 128, 2048, false), 120, 1.1, false));
  }
  record.environment.driver = record.environment.devices[0].name = name;
  record.suite = record.ceilings[0].source = name;
  return record;
}

// Figures with all their digits and samples enough to be thinned, as measured rows have them.
inline Record large_record(int rows) {
  Record record = empty_record();
  std::uint32_t state = 1;
  const auto noise = [&state] {  // within 1 % of 1
    state = state * 1664525U + 1013904223U;
    return 1 + 0.02 * (static_cast<double>(state) / 4294967296.0 - 0.5);
  };
  for (int i = 0; i < rows; ++i) {
    // Twelve kernels on each problem; 24 problems of each number of heads.
    Problem p = problem(i / 12 % 2 ? DType::bf16 : DType::fp16, i / 24 % 2 ? 64 : 128,
                        std::int64_t{512} << (i / 48 % 6), i / 288 % 2 != 0);
    p.heads_q = p.heads_kv = 1 + i / 576;
    const std::string kernel = fmt::format("kernel{}", i % 12);
    Row r = row(kernel, p, (50 + i % 600) * noise(), 1.1 * noise(), false);
    TimeUs& time = *r.time_us;
    time.samples.clear();
    for (int k = 0; k < 40; ++k) {
      time.samples.push_back(time.median * noise());
      r.clock_mhz->samples.push_back(1800 * noise());
    }
    time.n = 40;
    r.power_w = 600 * noise();
    r.repro = fmt::format(
        "rooflash run --kernel {} --fwd --dtype {} --batch-size {} --nheads {} --seqlen {} "
        "--headdim {} --causal true --device cuda:0",
        kernel, to_string(p.dtype), p.batch, p.heads_q, p.seqlen_kv, p.headdim);
    record.rows.push_back(std::move(r));
  }
  return record;
}

// Seven kernels over four dtypes: every chart has something to show, some of it out of the
// ordinary.
inline Record showcase_record() {
  Record record = empty_record();
  record.suite = "made-up numbers";
  record.ceilings[0].gemm_tflops = {{"bf16", 791}, {"fp16", 756}, {"e4m3", 1525}, {"fp32", 51}};
  record.datasheet[0].tensor_tflops = {{"bf16", 989}, {"fp16", 989}, {"e4m3", 1979}, {"fp32", 67}};
  record.environment.devices[0].power_limit_w = 700;
  record.environment.devices[0].sm_clock_max_mhz = 1980;
  UnitRoofs units;
  units.l2_read_gbps = 12000;
  units.exp_gops = 3900;
  record.ceilings[0].units = units;
  record.ceilings[0].launch = LaunchCosts{4.1, 1.2, std::nullopt, std::nullopt};
  SustainedRoofs sustained;
  sustained.gemm_tflops = {{"bf16", 640}};
  record.ceilings[0].sustained = sustained;
  struct Kernel {
    const char* name;
    double tflops;
    double reread;
    bool fp8;
  };
  const Kernel kernels[] = {{"naive", 150, 40, false}, {"sdpa", 190, 12, false},
                            {"fa1", 260, 2.2, false},  {"fa2", 370, 1.05, false},
                            {"fa3", 640, 1.02, false}, {"rf", 690, 1.01, false},
                            {"fp8", 900, 1.04, true}};
  int i = 0;
  for (const bool causal : {false, true}) {
    for (const std::int64_t headdim : {64, 128}) {
      for (const DType dtype : {DType::bf16, DType::fp16, DType::e4m3}) {
        for (const Kernel& kernel : kernels) {
          if (kernel.fp8 != (dtype == DType::e4m3)) continue;
          for (std::int64_t seqlen = 512; seqlen <= 16384; seqlen *= 2) {
            const Problem p = problem(dtype, headdim, seqlen, causal);
            const double s = static_cast<double>(seqlen);
            const double wave = 1 + 0.02 * std::sin(++i * 1.7);
            const double rate = kernel.tflops * (headdim == 64 ? 0.75 : 1) * (causal ? 0.85 : 1) *
                                s / (s + 700) * wave;
            Row r = row(kernel.name, p, rate,
                        kernel.reread > 10 ? 1 + kernel.reread * s / 16384 : kernel.reread, false);
            r.clock_mhz = Clock{1800 + 60 * std::sin(i * 0.7),
                                1780 + 60 * std::sin(i * 0.7),
                                1830 + 60 * std::sin(i * 0.7),
                                {}};
            r.power_w = 480 + 190 * std::sin(i * 0.31);
            r.counters.xu_pipe_pct = 20 + 50 * s / (s + 900);
            r.counters.tensor_pipe_pct = 100 * rate / 1100;
            if (r.kernel == "naive" && seqlen == 16384) {
              r = failure(kernel.name, p, Status::oom, "the scores do not fit");
              r.memory.needed_bytes = std::int64_t{160} << 30;
              r.memory.free_bytes = std::int64_t{139} << 30;
            }
            if (r.kernel == "fa1" && seqlen == 512) {
              r = failure(kernel.name, p, Status::unsupported, "needs 1,024 keys or more");
            }
            record.rows.push_back(std::move(r));
          }
        }
      }
    }
  }
  record.rows[20] = failure(record.rows[20].kernel, record.rows[20].problem, Status::wrong,
                            "max error 0.5 over the tolerance 0.004");
  record.rows[60].flags = {"clock_unsettled"};
  record.rows[61].throttle = {"sw_power_cap"};
  return record;
}

}  // namespace rooflash::fixture
