#include "worker/cuda/timed_case.hpp"

#include <utility>

#include "core/units.hpp"
#include "worker/cuda/cuda_row.hpp"
#include "worker/cuda/energy.hpp"

namespace rooflash {

void time_launch(Timer& timer, const Nvml& nvml, const RunOptions& options, const Launch& launch,
                 const PhaseSink& phase, Row& row) {
  phase("warmup");
  const std::int64_t warmup_launches = timer.warm_up(launch, options);
  if (options.power == "sustained") measure_energy(timer, nvml, launch, row);
  const NvmlSnapshot before = nvml.snapshot();
  const double before_us = steady_us();
  phase("timed");
  Timing timing = timer.measure(launch, options);
  timing.time_us.warmup_launches = warmup_launches;
  const NvmlSnapshot after = nvml.snapshot();

  row.trace = trace_of(timing);
  if (before.power_w) row.trace->power_w.push_back({before_us, *before.power_w});
  if (after.power_w) row.trace->power_w.push_back({steady_us(), *after.power_w});
  add_timing(row, std::move(timing), before, after);
}

void time_quantizing(Timer& timer, const RunOptions& options, const Launch& quantize,
                     const PhaseSink& phase, Row& row) {
  phase("warmup");
  const std::int64_t warmup_launches = timer.warm_up(quantize, options);
  phase("timed");
  row.quantize_us = timer.measure(quantize, options).time_us;
  row.quantize_us->warmup_launches = warmup_launches;
  row.time_with_quantize_us = row.time_us->median + row.quantize_us->median;
}

}  // namespace rooflash
