// CUPTI's host side: which metrics a chip has, and what it takes to collect a list of them. Needs
// no GPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "measure/cupti_api.hpp"

namespace rooflash {

// A list of metrics compiled for a chip. The configuration image must outlive every session that
// uses it, because CUPTI keeps the pointer: neither copied nor moved.
class MetricPlan {
 public:
  // `availability` is CUPTI's image of a device's counters; empty takes all of the chip. Throws
  // CounterFailure; one unknown name refuses the whole list.
  MetricPlan(const CuptiApi& api, const std::string& chip, std::vector<std::string> metrics,
             const std::vector<std::uint8_t>& availability = {});
  ~MetricPlan();
  MetricPlan(const MetricPlan&) = delete;
  MetricPlan& operator=(const MetricPlan&) = delete;

  const std::vector<std::string>& metrics() const { return metrics_; }
  std::size_t passes() const { return passes_; }
  // For CUPTI's parameter blocks.
  const char** names() { return pointers_.data(); }
  std::size_t image_bytes() const { return image_bytes_; }
  std::uint8_t* image() { return reinterpret_cast<std::uint8_t*>(image_.data()); }

  // Values by name of the one range in `data`. Throws CounterFailure.
  std::map<std::string, double> evaluate(const std::vector<std::uint8_t>& data);

 private:
  const CuptiApi& api_;
  std::vector<std::string> metrics_;
  std::vector<const char*> pointers_;
  CUpti_Profiler_Host_Object* host_ = nullptr;
  std::vector<std::uint64_t> image_;  // 64-bit words: it must be aligned to 8 bytes
  std::size_t image_bytes_ = 0;
  std::size_t passes_ = 0;
};

enum class MetricKind { counter, ratio, throughput };

// Every metric of a chip without its last part (".sum", ".pct"), by name. Takes some tens of
// milliseconds. Throws CounterFailure, also for a chip that CUPTI does not know.
std::map<std::string, MetricKind> base_metrics(const CuptiApi& api, const std::string& chip);

// Whether the chip has a metric of this full name. Throws CounterFailure where CUPTI cannot say.
bool has_metric(const CuptiApi& api, const std::string& chip, const std::string& name);

}  // namespace rooflash
