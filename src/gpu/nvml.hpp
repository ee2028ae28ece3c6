// What NVML knows about one GPU: clocks, power, temperature, limits, other processes. Opened at run
// time; whatever it cannot tell is an empty value and a reason. Nothing here changes a setting.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rooflash {

// `missing` maps the name of each empty field to the reason.
struct NvmlSnapshot {
  std::optional<double> sm_clock_mhz;
  std::optional<double> memory_clock_mhz;
  std::optional<double> power_w;  // average of the last second on most boards
  std::optional<double> temperature_c;
  std::optional<std::vector<std::string>> throttle;  // reasons that hold the clock down now
  std::map<std::string, std::string> missing;
};

struct NvmlFacts {
  std::optional<double> sm_clock_max_mhz;
  std::optional<double> memory_clock_max_mhz;
  std::optional<double> power_limit_w;
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<std::int64_t>
      compute_processes;  // with a context on the GPU, whoever they belong to
  std::map<std::string, std::string> missing;
};

class Nvml {
 public:
  // The device at `pci_bus_id` ("0000:1a:00.0"). Refused, with a reason in every answer, where NVML
  // calls it something other than `name`: then the two libraries see different machines.
  Nvml(const std::string& pci_bus_id, const std::string& name);
  ~Nvml();
  NvmlSnapshot snapshot() const;
  NvmlFacts facts() const;
  // "" where unknown.
  std::string driver_version() const;

 private:
  struct Api;
  std::unique_ptr<Api> api_;
};

// Driver version from NVML or /proc; "" where there is no driver.
std::string installed_driver();

}  // namespace rooflash
