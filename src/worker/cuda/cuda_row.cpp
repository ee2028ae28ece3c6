#include "worker/cuda/cuda_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <utility>

#include "worker/backend.hpp"

namespace rooflash {

void end_row(Row& row, Status status, std::string reason) {
  row.status = status;
  row.reason = std::move(reason);
  if (status == Status::ok) return;
  row.time_us.reset();  // only rows that are ok carry times
  row.quantize_us.reset();
  row.time_with_quantize_us.reset();
  row.clock_mhz.reset();
  row.cycles_median.reset();
  row.energy.reset();
  row.derived = {};
}

Trace trace_of(const Timing& timing) {
  Trace trace;
  const double start = steady_us(timing.start);
  for (const double offset : timing.sample_start_us) {
    trace.sample_start_us.push_back(start + offset);
  }
  return trace;
}

void add_timing(Row& row, Timing timing, const NvmlSnapshot& before, const NvmlSnapshot& after) {
  if (timing.clock_mhz.samples.empty()) {
    row.missing["clock_mhz"] = "no SM wrote both clock stamps of every sample";
    row.missing["cycles.median"] = row.missing["clock_mhz"];
  } else {
    row.clock_mhz = std::move(timing.clock_mhz);
    row.cycles_median = timing.cycles_median;
  }
  row.time_us = std::move(timing.time_us);
  row.flags.insert(row.flags.end(), timing.flags.begin(), timing.flags.end());
  row.power_w = after.power_w;
  row.temperature_c = after.temperature_c;
  for (const NvmlSnapshot* snapshot : {&before, &after}) {
    for (const std::string& held : snapshot->throttle.value_or(std::vector<std::string>())) {
      if (std::find(row.throttle.begin(), row.throttle.end(), held) == row.throttle.end()) {
        row.throttle.push_back(held);
      }
    }
  }
  for (const char* field : {"power_w", "temperature_c", "throttle"}) {
    const auto found = after.missing.find(field);
    if (found != after.missing.end()) row.missing[field] = found->second;
  }
}

CounterExpectation expected_counters(const Problem& problem, const Traffic& traffic, bool cold) {
  CounterExpectation expected;
  expected.tensor_ops =
      std::any_of(traffic.stages.begin(), traffic.stages.end(), [](const Stage& stage) {
        return stage.path == TensorPath::mma_sync || stage.path == TensorPath::wgmma;
      });
  // After a flush all of Q must come from HBM, wherever each query sees a key, and K and V,
  // wherever each key is seen: nine tenths, because a bound that is too tight would call a good
  // value impossible.
  const bool reads_all_q =
      problem.mask.kind == MaskKind::none ||
      (problem.mask.kind == MaskKind::causal && problem.seqlen_kv >= problem.seqlen_q);
  expected.sm_reads = reads_all_q;
  if (cold && reads_all_q) {
    const bool reads_all_keys =
        problem.mask.kind == MaskKind::none || problem.mask.align == Align::bottom_right;
    const std::int64_t elements =
        q_elements(problem) + (reads_all_keys ? k_elements(problem) + v_elements(problem) : 0);
    expected.min_hbm_read_bytes = 0.9 * static_cast<double>(elements * size_bytes(problem.dtype));
  }
  return expected;
}

bool ran_family(const std::vector<std::string>& kernels_run, const Kernel& kernel) {
  std::istringstream symbols(
      !kernel.symbols.empty()
          ? std::string(kernel.symbols)
          : fmt::format("rooflash::{}::",
                        kernel.hidden ? "hidden" : std::string_view(kernel.name)));
  for (std::string own; std::getline(symbols, own, ',');) {
    if (std::any_of(kernels_run.begin(), kernels_run.end(),
                    [&](const std::string& ran) { return ran.find(own) != std::string::npos; })) {
      return true;
    }
  }
  return false;
}

}  // namespace rooflash
