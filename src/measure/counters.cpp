#include "measure/counters.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "measure/counter_failure.hpp"
#include "measure/cupti_api.hpp"

namespace rooflash {
namespace {

// A metric set compiled for the chip. The image must outlive every session that uses it: CUPTI
// keeps the pointer. 64-bit words, because it must be aligned to 8 bytes.
struct Config {
  MetricNames names;
  std::vector<std::string> metrics;
  std::vector<const char*> pointers;
  CUpti_Profiler_Host_Object* host = nullptr;
  std::vector<std::uint64_t> image;
  std::size_t image_bytes = 0;
  std::size_t passes = 0;
  std::uint8_t* bytes() { return reinterpret_cast<std::uint8_t*>(image.data()); }
};

}  // namespace

struct CounterSession::State {
  State(CounterTarget counted, const std::string& tool);
  ~State();

  void call(CUptiResult code, const char* name) const {
    if (code != CUPTI_SUCCESS) throw counter_failure(api, code, name);
  }
  void start();
  Config& config(DType dtype);
  std::map<std::string, double> collect(Config& config, const std::function<void()>& prepare,
                                        const std::function<void()>& launch);
  std::map<std::string, double> evaluate(Config& config, const std::vector<std::uint8_t>& data);

  CounterTarget target;
  CuptiApi api;
  CounterFailure failure;  // of the whole session; status "" while counting may work
  bool initialised = false;
  std::string chip;
  std::vector<std::uint8_t> availability;
  std::map<DType, Config> configs;
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

CounterSession::State::~State() {
  for (auto& [dtype, config] : configs) {
    if (config.host == nullptr) continue;
    auto end = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize);
    end.pHostObject = config.host;
    (void)api.cuptiProfilerHostDeinitialize(&end);
  }
  if (initialised) {
    auto end = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_DeInitialize);
    (void)api.cuptiProfilerDeInitialize(&end);
  }
}

Config& CounterSession::State::config(DType dtype) {
  const auto found = configs.find(dtype);
  if (found != configs.end()) return found->second;
  const auto names = metric_names(chip, dtype);
  if (!names) throw CounterFailure{"unavailable", "no metric names are known for chip " + chip};

  Config config;
  config.names = *names;
  config.metrics = names->all();
  for (const std::string& metric : config.metrics) config.pointers.push_back(metric.c_str());
  auto host = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.c_str();
  host.pCounterAvailabilityImage = availability.data();
  ROOFLASH_CUPTI(cuptiProfilerHostInitialize, &host);
  config.host = host.pHostObject;
  // Kept from here on, so that the destructor ends the host object whatever fails below; the
  // strings stay where they are, because moving a vector does not move its elements.
  Config& kept = configs.emplace(dtype, std::move(config)).first->second;
  try {
    auto add = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics);
    add.pHostObject = kept.host;
    add.ppMetricNames = kept.pointers.data();
    add.numMetrics = kept.pointers.size();
    if (const CUptiResult code = api.cuptiProfilerHostConfigAddMetrics(&add)) {
      throw refused_metrics(api, code, chip, availability, kept.metrics);
    }
    auto size = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize);
    size.pHostObject = kept.host;
    ROOFLASH_CUPTI(cuptiProfilerHostGetConfigImageSize, &size);
    kept.image_bytes = size.configImageSize;
    kept.image.resize((kept.image_bytes + 7) / 8);
    auto image = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage);
    image.pHostObject = kept.host;
    image.configImageSize = kept.image_bytes;
    image.pConfigImage = kept.bytes();
    ROOFLASH_CUPTI(cuptiProfilerHostGetConfigImage, &image);
    auto passes = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses);
    passes.configImageSize = kept.image_bytes;
    passes.pConfigImage = kept.bytes();
    ROOFLASH_CUPTI(cuptiProfilerHostGetNumOfPasses, &passes);
    kept.passes = passes.numOfPasses;
  } catch (const CounterFailure&) {
    auto end = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize);
    end.pHostObject = kept.host;
    (void)api.cuptiProfilerHostDeinitialize(&end);
    configs.erase(dtype);
    throw;
  }
  return kept;
}

std::map<std::string, double> CounterSession::State::collect(Config& config,
                                                             const std::function<void()>& prepare,
                                                             const std::function<void()>& launch) {
  auto enable = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Enable);
  enable.ctx = target.context;
  ROOFLASH_CUPTI(cuptiRangeProfilerEnable, &enable);
  CUpti_RangeProfiler_Object* const profiler = enable.pRangeProfilerObject;
  struct Disable {
    const CuptiApi& api;
    CUpti_RangeProfiler_Object* profiler;
    ~Disable() {
      auto end = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_Disable);
      end.pRangeProfilerObject = profiler;
      (void)api.cuptiRangeProfilerDisable(&end);
    }
  } const disable{api, profiler};

  auto size = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataSize);
  size.pRangeProfilerObject = profiler;
  size.pMetricNames = config.pointers.data();
  size.numMetrics = config.pointers.size();
  size.maxNumOfRanges = 1;
  size.maxNumRangeTreeNodes = 1;
  ROOFLASH_CUPTI(cuptiRangeProfilerGetCounterDataSize, &size);
  // A fresh image for each capture: values of an earlier one would mix in.
  std::vector<std::uint8_t> data(size.counterDataSize);
  auto clear = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_CounterDataImage_Initialize);
  clear.pRangeProfilerObject = profiler;
  clear.counterDataSize = data.size();
  clear.pCounterData = data.data();
  ROOFLASH_CUPTI(cuptiRangeProfilerCounterDataImageInitialize, &clear);

  auto set = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_SetConfig);
  set.pRangeProfilerObject = profiler;
  set.configSize = config.image_bytes;
  set.pConfig = config.bytes();
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
  for (std::size_t pass = 0; pass <= config.passes && stop.isAllPassSubmitted == 0; ++pass) {
    // Before Start, so that the flush is not counted. Start synchronises and restarts the counters,
    // and moves too little data to warm the cache again.
    prepare();
    target.synchronize();
    ROOFLASH_CUPTI(cuptiRangeProfilerStart, &start);
    ROOFLASH_CUPTI(cuptiRangeProfilerPushRange, &push);
    launch();
    target.synchronize();
    ROOFLASH_CUPTI(cuptiRangeProfilerPopRange, &pop);
    ROOFLASH_CUPTI(cuptiRangeProfilerStop, &stop);
  }
  if (stop.isAllPassSubmitted == 0) {
    throw CounterFailure{"invalid", fmt::format("{} passes were not enough", config.passes + 1)};
  }
  auto decode = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_DecodeData);
  decode.pRangeProfilerObject = profiler;
  ROOFLASH_CUPTI(cuptiRangeProfilerDecodeData, &decode);
  if (decode.numOfRangeDropped != 0) throw CounterFailure{"invalid", "CUPTI dropped the range"};
  return evaluate(config, data);
}

std::map<std::string, double> CounterSession::State::evaluate(
    Config& config, const std::vector<std::uint8_t>& data) {
  auto info = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo);
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  ROOFLASH_CUPTI(cuptiRangeProfilerGetCounterDataInfo, &info);
  if (info.numTotalRanges != 1) {
    throw CounterFailure{"invalid", fmt::format("{} ranges in place of 1", info.numTotalRanges)};
  }
  std::vector<double> values(config.pointers.size(), 0.0);
  auto ask = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues);
  ask.pHostObject = config.host;
  ask.pCounterDataImage = data.data();
  ask.counterDataImageSize = data.size();
  ask.rangeIndex = 0;
  ask.ppMetricNames = config.pointers.data();
  ask.numMetrics = config.pointers.size();
  ask.pMetricValues = values.data();
  ROOFLASH_CUPTI(cuptiProfilerHostEvaluateToGpuValues, &ask);
  std::map<std::string, double> by_name;
  for (std::size_t i = 0; i < values.size(); ++i) by_name[config.metrics[i]] = values[i];
  return by_name;
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
    Config& config = state_->config(dtype);
    return interpret(config.names, state_->collect(config, prepare, launch), expected);
  } catch (const CounterFailure& failure) {
    counters.status = failure.status;
    counters.reason = failure.reason;
    // A missing permission does not come back within a run; a busy device may.
    if (failure.status == "no_permission") state_->failure = failure;
  }
  return counters;
}

std::string CounterSession::library() const {
  const CuptiApi& api = state_->api;
  return api.error().empty() ? fmt::format("{}, API {}", api.path(), api.version()) : api.error();
}

}  // namespace rooflash
