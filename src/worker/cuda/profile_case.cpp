#include "worker/cuda/profile_case.hpp"

#include <cuda_profiler_api.h>
#include <algorithm>
#include <iterator>

#include "gpu/check.hpp"
#include "gpu/nvtx.hpp"
#include "measure/metric_check.hpp"

namespace rooflash {

SmLimits sm_limits(int ordinal) {
  cudaDeviceProp prop{};
  ROOFLASH_CUDA(cudaGetDeviceProperties(&prop, ordinal));
  SmLimits limits;
  limits.sm_count = prop.multiProcessorCount;
  limits.warps = prop.maxThreadsPerMultiProcessor / prop.warpSize;
  limits.blocks = prop.maxBlocksPerMultiProcessor;
  limits.registers = prop.regsPerMultiprocessor;
  limits.smem_bytes = static_cast<std::int64_t>(prop.sharedMemPerMultiprocessor);
  limits.smem_reserved_bytes = static_cast<std::int64_t>(prop.reservedSharedMemPerBlock);
  return limits;
}

MetricAnswer answer_metrics(const CounterSession& session, const std::vector<std::string>& names) {
  MetricAnswer answer{session.chip(), session.library(), "ok", "", {}};
  const auto fail = [&](const CounterFailure& failure) {
    answer.status = failure.status;
    answer.reason = failure.reason;
  };
  if (!session.failure().status.empty()) {
    fail(session.failure());
    return answer;
  }
  try {
    answer.refused = refused_metrics(session.api(), answer.chip, names);
  } catch (const CounterFailure& failure) {
    fail(failure);
  }
  return answer;
}

std::vector<CountedGroup> count_groups(CounterSession& session,
                                       const std::vector<std::vector<std::string>>& groups,
                                       const std::function<void()>& prepare,
                                       const std::function<void()>& launch) {
  std::vector<CountedGroup> counted;
  for (const std::vector<std::string>& group : groups) {
    CountedGroup result = session.count(group, prepare, launch);
    if (result.status == "unavailable") {
      // Perhaps one name that this chip of a known generation has not, which refuses all.
      const MetricAnswer answer = answer_metrics(session, group);
      std::vector<std::string> there;
      std::copy_if(group.begin(), group.end(), std::back_inserter(there),
                   [&](const std::string& name) { return !answer.refused.contains(name); });
      if (!there.empty() && there.size() < group.size()) {
        result = session.count(there, prepare, launch);
      }
      for (const auto& [name, reason] : answer.refused) result.missing[name] = reason;
    }
    counted.push_back(std::move(result));
  }
  return counted;
}

void launch_for_profiler(const Launch& launch, const std::function<void()>& prepare,
                         cudaStream_t stream) {
  launch(stream);  // loads the module, which is no part of the launch that is looked at
  prepare();
  ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  ROOFLASH_CUDA(cudaProfilerStart());
  {
    const NvtxRange range(NvtxPhase::timed);
    launch(stream);
    ROOFLASH_CUDA(cudaStreamSynchronize(stream));
  }
  ROOFLASH_CUDA(cudaProfilerStop());
}

}  // namespace rooflash
