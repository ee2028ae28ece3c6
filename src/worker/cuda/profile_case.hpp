// What a profile does with a prepared case.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <string>
#include <vector>

#include "kernel.hpp"
#include "measure/counters.hpp"
#include "profile/counted.hpp"
#include "worker/protocol.hpp"

namespace rooflash {

// What each SM of device `ordinal` has to give to blocks.
SmLimits sm_limits(int ordinal);

// Which of `names` the device has: strictly by CUPTI's lists, each refused one with what is wrong
// and the nearest name.
MetricAnswer answer_metrics(const CounterSession& session, const std::vector<std::string>& names);

// Counts each group. `prepare` and `launch` run once for each pass. A metric that the chip has not
// is left out of its group, with the reason.
std::vector<CountedGroup> count_groups(CounterSession& session,
                                       const std::vector<std::vector<std::string>>& groups,
                                       const std::function<void()>& prepare,
                                       const std::function<void()>& launch);

// The one launch of `run --profile`: after `prepare`, alone in the range `timed` of the domain
// rooflash and between cudaProfilerStart and cudaProfilerStop.
void launch_for_profiler(const Launch& launch, const std::function<void()>& prepare,
                         cudaStream_t stream);

}  // namespace rooflash
