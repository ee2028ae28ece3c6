#include "measure/counters.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "measure/metric_plan.hpp"

namespace rooflash {

struct CounterSession::State {
  State(CounterTarget counted, const std::string& tool);
  ~State();

  void call(CUptiResult code, const char* name) const {
    if (code != CUPTI_SUCCESS) throw counter_failure(api, code, name);
  }
  // A missing permission does not come back within a run; a busy device may.
  void keep(const CounterFailure& caught) {
    if (caught.status == "no_permission") failure = caught;
  }
  void start();
  void enable(MetricPlan& plan);
  void disable();
  MetricPlan& plan(const std::vector<std::string>& metrics);
  std::map<std::string, double> collect(const std::vector<std::string>& metrics,
                                        const std::function<void()>& prepare,
                                        const std::function<void()>& launch);
  std::map<std::string, double> capture(MetricPlan& plan, const std::function<void()>& prepare,
                                        const std::function<void()>& launch);

  CounterTarget target;
  CuptiApi api;
  CounterFailure failure;  // of the whole session; status "" while counting may work
  bool initialised = false;
  std::string chip;
  std::vector<std::uint8_t> availability;
  std::map<std::vector<std::string>, MetricPlan> plans;
  // Stays enabled while the same plan is counted: the first Start after Enable takes longer than
  // all the rest of a capture (docs/measuring.md, Counters). Another plan needs another Enable:
  // CUPTI 13.0 gives NaN for metrics that the first one had not.
  CUpti_RangeProfiler_Object* profiler = nullptr;
  const MetricPlan* enabled_for = nullptr;
  std::vector<std::uint8_t> data;  // the counters' image, which the profiler keeps a pointer to
};

#define ROOFLASH_CUPTI(function, params) call(api.function(params), #function)

CounterSession::State::State(CounterTarget counted, const std::string& tool)
    : target(std::move(counted)) {
  if (!tool.empty()) {
    failure = stand_down_for(tool);
    return;
  }
  if (!api.error().empty()) {
    failure = {"unavailable", api.error()};
    return;
  }
  try {
    start();
  } catch (const CounterFailure& caught) {
    failure = caught;
  }
}

void CounterSession::State::start() {
  const std::string client = attached_client(api);
  if (!client.empty()) throw stand_down_for(client);
  if (target.context == nullptr) {
    throw CounterFailure{"unavailable", "there is no CUDA context to count in"};
  }
  auto init = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Initialize);
  ROOFLASH_CUPTI(cuptiProfilerInitialize, &init);
  initialised = true;

  auto support = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_DeviceSupported);
  support.cuDevice = target.ordinal;
  support.api = CUPTI_PROFILER_RANGE_PROFILING;
  ROOFLASH_CUPTI(cuptiProfilerDeviceSupported, &support);
  if (support.isSupported != CUPTI_PROFILER_CONFIGURATION_SUPPORTED) {
    throw unsupported_device(support);
  }
  auto name = ROOFLASH_CUPTI_PARAMS(CUpti_Device_GetChipName);
  name.deviceIndex = static_cast<std::size_t>(target.ordinal);
  ROOFLASH_CUPTI(cuptiDeviceGetChipName, &name);
  if (name.pChipName != nullptr) chip = name.pChipName;

  auto available = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_GetCounterAvailability);
  available.ctx = target.context;
  ROOFLASH_CUPTI(cuptiProfilerGetCounterAvailability, &available);
  availability.resize(available.counterAvailabilityImageSize);
  available.pCounterAvailabilityImage = availability.data();
  ROOFLASH_CUPTI(cuptiProfilerGetCounterAvailability, &available);
}

void CounterSession::State::enable(MetricPlan& plan) {
  if (profiler != nullptr && enabled_for == &plan) return;
  disable();
  auto enable = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Enable);
  enable.ctx = target.context;
  ROOFLASH_CUPTI(cuptiRangeProfilerEnable, &enable);
  profiler = enable.pRangeProfilerObject;
  enabled_for = &plan;
  auto size = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize);
  size.pRangeProfilerObject = profiler;
  size.pMetricNames = plan.names();
  size.numMetrics = plan.metrics().size();
  size.maxNumOfRanges = 1;
  size.maxNumRangeTreeNodes = 1;
  ROOFLASH_CUPTI(cuptiRangeProfilerGetCounterDataSize, &size);
  data.resize(size.counterDataSize);
}

void CounterSession::State::disable() {
  if (profiler == nullptr) return;
  auto end = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Disable);
  end.pRangeProfilerObject = profiler;
  (void)api.cuptiRangeProfilerDisable(&end);
  profiler = nullptr;
}

CounterSession::State::~State() {
  disable();
  plans.clear();
  if (initialised) {
    auto end = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_DeInitialize);
    (void)api.cuptiProfilerDeInitialize(&end);
  }
}

MetricPlan& CounterSession::State::plan(const std::vector<std::string>& metrics) {
  const auto found = plans.find(metrics);
  if (found != plans.end()) return found->second;
  return plans
      .emplace(std::piecewise_construct, std::forward_as_tuple(metrics),
               std::forward_as_tuple(api, chip, metrics, availability))
      .first->second;
}

std::map<std::string, double> CounterSession::State::collect(
    const std::vector<std::string>& metrics, const std::function<void()>& prepare,
    const std::function<void()>& launch) {
  MetricPlan& wanted = plan(metrics);
  try {
    enable(wanted);
    return capture(wanted, prepare, launch);
  } catch (...) {
    disable();  // whatever state the failure left it in, the next capture starts anew
    throw;
  }
}

std::map<std::string, double> CounterSession::State::capture(MetricPlan& plan,
                                                             const std::function<void()>& prepare,
                                                             const std::function<void()>& launch) {
  // A fresh image for each capture: values of an earlier one would mix in.
  auto clear = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize);
  clear.pRangeProfilerObject = profiler;
  clear.counterDataSize = data.size();
  clear.pCounterData = data.data();
  ROOFLASH_CUPTI(cuptiRangeProfilerCounterDataImageInitialize, &clear);

  auto set = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig);
  set.pRangeProfilerObject = profiler;
  set.configSize = plan.image_bytes();
  set.pConfig = plan.image();
  set.counterDataImageSize = data.size();
  set.pCounterDataImage = data.data();
  set.range = CUPTI_UserRange;
  set.replayMode = CUPTI_UserReplay;
  set.maxRangesPerPass = 1;
  set.numNestingLevels = 1;
  set.minNestingLevel = 1;
  set.passIndex = 0;
  set.targetNestingLevel = 1;
  ROOFLASH_CUPTI(cuptiRangeProfilerSetConfig, &set);

  auto start = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Start);
  auto push = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_PushRange);
  auto pop = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_PopRange);
  auto stop = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Stop);
  start.pRangeProfilerObject = push.pRangeProfilerObject = profiler;
  pop.pRangeProfilerObject = stop.pRangeProfilerObject = profiler;
  push.pRangeName = "case";
  for (std::size_t pass = 0; pass <= plan.passes() && stop.isAllPassSubmitted == 0; ++pass) {
    ROOFLASH_CUPTI(cuptiRangeProfilerStart, &start);
    // After Start, which leaves megabytes of its own dirty in L2, and before the range, so that
    // neither their write-back nor the flush itself is counted.
    prepare();
    target.synchronize();
    ROOFLASH_CUPTI(cuptiRangeProfilerPushRange, &push);
    launch();
    target.synchronize();
    ROOFLASH_CUPTI(cuptiRangeProfilerPopRange, &pop);
    ROOFLASH_CUPTI(cuptiRangeProfilerStop, &stop);
  }
  if (stop.isAllPassSubmitted == 0) {
    throw CounterFailure{"invalid", fmt::format("{} passes were not enough", plan.passes() + 1)};
  }
  auto decode = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData);
  decode.pRangeProfilerObject = profiler;
  ROOFLASH_CUPTI(cuptiRangeProfilerDecodeData, &decode);
  if (decode.numOfRangeDropped != 0) throw CounterFailure{"invalid", "CUPTI dropped the range"};
  return plan.evaluate(data);
}

CounterSession::CounterSession(CounterTarget target, const std::string& tool)
    : state_(new State(std::move(target), tool)) {}
CounterSession::~CounterSession() = default;

Counters CounterSession::measure(DType dtype, const std::function<void()>& prepare,
                                 const std::function<void()>& launch,
                                 const CounterExpectation& expected) {
  Counters counters;
  try {
    if (!state_->failure.status.empty()) throw state_->failure;
    const auto names = metric_names(state_->chip, dtype);
    if (!names) {
      throw CounterFailure{"unavailable", "no metric names are known for chip " + state_->chip};
    }
    return interpret(*names, state_->collect(names->all(), prepare, launch), expected);
  } catch (const CounterFailure& failure) {
    counters.status = failure.status;
    counters.reason = failure.reason;
    state_->keep(failure);
  }
  return counters;
}

CountedGroup CounterSession::count(const std::vector<std::string>& metrics,
                                   const std::function<void()>& prepare,
                                   const std::function<void()>& launch) {
  CountedGroup group;
  try {
    if (!state_->failure.status.empty()) throw state_->failure;
    for (const auto& [name, value] : state_->collect(metrics, prepare, launch)) {
      if (std::isfinite(value)) {
        group.values[name] = value;
      } else {
        group.missing[name] = fmt::format("CUPTI gave {}", value);
      }
    }
    group.passes = static_cast<std::int64_t>(state_->plan(metrics).passes());
    group.status = "ok";
  } catch (const CounterFailure& failure) {
    group.status = failure.status;
    group.reason = failure.reason;
    state_->keep(failure);
  }
  return group;
}

std::string CounterSession::chip() const {
  return state_->chip;
}

const CuptiApi& CounterSession::api() const {
  return state_->api;
}

CounterFailure CounterSession::failure() const {
  return state_->failure;
}

std::string CounterSession::library() const {
  const CuptiApi& api = state_->api;
  return api.error().empty() ? fmt::format("{}, API {}", api.path(), api.version()) : api.error();
}

}  // namespace rooflash
