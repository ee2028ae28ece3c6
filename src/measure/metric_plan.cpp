#include "measure/metric_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>

#include "measure/counter_failure.hpp"

namespace rooflash {
namespace {

void check(const CuptiApi& api, CUptiResult code, const char* call) {
  if (code != CUPTI_SUCCESS) throw counter_failure(api, code, call);
}
#define ROOFLASH_CUPTI(api, function, params) check(api, (api).function(params), #function)

CUpti_Profiler_Host_Object* open_host(const CuptiApi& api, const std::string& chip,
                                      const std::vector<std::uint8_t>& availability) {
  auto host = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_Initialize);
  host.profilerType = CUPTI_PROFILER_TYPE_RANGE_PROFILER;
  host.pChipName = chip.c_str();
  host.pCounterAvailabilityImage = availability.empty() ? nullptr : availability.data();
  ROOFLASH_CUPTI(api, cuptiProfilerHostInitialize, &host);
  return host.pHostObject;
}

void close_host(const CuptiApi& api, CUpti_Profiler_Host_Object* object) {
  if (object == nullptr) return;
  auto end = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_Deinitialize);
  end.pHostObject = object;
  (void)api.cuptiProfilerHostDeinitialize(&end);
}

// A host object for the length of a scope.
class Host {
 public:
  Host(const CuptiApi& api, const std::string& chip,
       const std::vector<std::uint8_t>& availability = {})
      : api_(api), object_(open_host(api, chip, availability)) {}
  ~Host() { close_host(api_, object_); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  CUpti_Profiler_Host_Object* get() const { return object_; }

 private:
  const CuptiApi& api_;
  CUpti_Profiler_Host_Object* object_;
};

CUptiResult add_one(const CuptiApi& api, const Host& host, const std::string& name) {
  const char* pointer = name.c_str();
  auto add = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics);
  add.pHostObject = host.get();
  add.ppMetricNames = &pointer;
  add.numMetrics = 1;
  return api.cuptiProfilerHostConfigAddMetrics(&add);
}

// For a list of metrics that CUPTI refused with `code`, which does not say which of them it does
// not know on `chip`: asks for each.
CounterFailure refused_metrics(const CuptiApi& api, CUptiResult code, const std::string& chip,
                               const std::vector<std::uint8_t>& availability,
                               const std::vector<std::string>& metrics) {
  std::vector<std::string> unknown;
  for (const std::string& metric : metrics) {
    const Host host(api, chip, availability);
    if (add_one(api, host, metric) != CUPTI_SUCCESS) unknown.push_back(metric);
  }
  if (unknown.empty()) return counter_failure(api, code, "cuptiProfilerHostConfigAddMetrics");
  return {"unavailable",
          fmt::format("cuptiProfilerHostConfigAddMetrics: {}; {} (API version {}) has no metric {} "
                      "on chip {}",
                      api.text(code), api.path(), api.version(), fmt::join(unknown, ", "), chip)};
}

}  // namespace

MetricPlan::MetricPlan(const CuptiApi& api, const std::string& chip,
                       std::vector<std::string> metrics,
                       const std::vector<std::uint8_t>& availability)
    : api_(api), metrics_(std::move(metrics)), host_(open_host(api, chip, availability)) {
  for (const std::string& metric : metrics_) pointers_.push_back(metric.c_str());
  try {
    auto add = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_ConfigAddMetrics);
    add.pHostObject = host_;
    add.ppMetricNames = pointers_.data();
    add.numMetrics = pointers_.size();
    if (const CUptiResult code = api_.cuptiProfilerHostConfigAddMetrics(&add)) {
      throw refused_metrics(api_, code, chip, availability, metrics_);
    }
    auto size = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImageSize);
    size.pHostObject = host_;
    ROOFLASH_CUPTI(api_, cuptiProfilerHostGetConfigImageSize, &size);
    image_bytes_ = size.configImageSize;
    image_.resize((image_bytes_ + 7) / 8);
    auto get = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetConfigImage);
    get.pHostObject = host_;
    get.configImageSize = image_bytes_;
    get.pConfigImage = image();
    ROOFLASH_CUPTI(api_, cuptiProfilerHostGetConfigImage, &get);
    auto passes = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetNumOfPasses);
    passes.configImageSize = image_bytes_;
    passes.pConfigImage = image();
    ROOFLASH_CUPTI(api_, cuptiProfilerHostGetNumOfPasses, &passes);
    passes_ = passes.numOfPasses;
  } catch (const CounterFailure&) {
    close_host(api_, host_);
    throw;
  }
}

MetricPlan::~MetricPlan() {
  close_host(api_, host_);
}

std::map<std::string, double> MetricPlan::evaluate(const std::vector<std::uint8_t>& data) {
  auto info = ROOFLASH_CUPTI_PARAMS(CUpti_RangeProfiler_GetCounterDataInfo);
  info.pCounterDataImage = data.data();
  info.counterDataImageSize = data.size();
  ROOFLASH_CUPTI(api_, cuptiRangeProfilerGetCounterDataInfo, &info);
  if (info.numTotalRanges != 1) {
    throw CounterFailure{"invalid", fmt::format("{} ranges in place of 1", info.numTotalRanges)};
  }
  std::vector<double> values(pointers_.size(), 0.0);
  auto ask = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_EvaluateToGpuValues);
  ask.pHostObject = host_;
  ask.pCounterDataImage = data.data();
  ask.counterDataImageSize = data.size();
  ask.rangeIndex = 0;
  ask.ppMetricNames = pointers_.data();
  ask.numMetrics = pointers_.size();
  ask.pMetricValues = values.data();
  ROOFLASH_CUPTI(api_, cuptiProfilerHostEvaluateToGpuValues, &ask);
  std::map<std::string, double> by_name;
  for (std::size_t i = 0; i < values.size(); ++i) by_name[metrics_[i]] = values[i];
  return by_name;
}

std::map<std::string, MetricKind> base_metrics(const CuptiApi& api, const std::string& chip) {
  const Host host(api, chip);
  std::map<std::string, MetricKind> names;
  for (const auto& [type, kind] :
       {std::pair(CUPTI_METRIC_TYPE_COUNTER, MetricKind::counter),
        std::pair(CUPTI_METRIC_TYPE_RATIO, MetricKind::ratio),
        std::pair(CUPTI_METRIC_TYPE_THROUGHPUT, MetricKind::throughput)}) {
    auto list = ROOFLASH_CUPTI_PARAMS(CUpti_Profiler_Host_GetBaseMetrics);
    list.pHostObject = host.get();
    list.metricType = type;
    ROOFLASH_CUPTI(api, cuptiProfilerHostGetBaseMetrics, &list);
    for (std::size_t i = 0; i < list.numMetrics; ++i) names.emplace(list.ppMetricNames[i], kind);
  }
  return names;
}

bool has_metric(const CuptiApi& api, const std::string& chip, const std::string& name) {
  const Host host(api, chip);
  const CUptiResult code = add_one(api, host, name);
  // What CUPTI answers to an unknown name or an unknown last part; the other is documented for it.
  if (code == CUPTI_ERROR_INVALID_PARAMETER || code == CUPTI_ERROR_INVALID_METRIC_NAME)
    return false;
  check(api, code, "cuptiProfilerHostConfigAddMetrics");
  return true;
}

}  // namespace rooflash
