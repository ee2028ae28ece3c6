// What NVML knows about one GPU: clocks, power, temperature, limits, other processes. Opened at run
// time; whatever it cannot tell is an empty value and a reason: a missing library or function, a
// figure that is not supported, a driver that hangs. Nothing here changes a setting.
#pragma once

#include <chrono>
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
  std::optional<bool> clocks_set;                    // locked or lowered by a user
  std::map<std::string, std::string> missing;
};

struct NvmlFacts {
  std::optional<double> sm_clock_max_mhz;
  std::optional<double> memory_clock_max_mhz;
  std::optional<double> power_limit_w;
  std::optional<double> power_limit_default_w;
  std::optional<bool> persistence;  // the driver stays loaded between runs
  std::optional<bool> ecc;
  std::optional<bool> mig;
  std::optional<std::int64_t>
      compute_processes;  // with a context on the GPU, whoever they belong to
  std::map<std::string, std::string> missing;
};

// Mean power over a window, from the board's energy counter.
struct NvmlPower {
  std::optional<double> watts;
  double window_s = 0;
  std::string missing;  // why there is no figure
};

struct NvmlApi;

class Nvml {
 public:
  // The device at `pci_bus_id` ("0000:1a:00.0"), of the library in ROOFLASH_NVML or the driver's.
  // Refused, with a reason in every answer, where NVML calls it something other than `name`: then
  // the two libraries see different machines. An NVML that takes longer than `limit` for an answer
  // is given up.
  Nvml(const std::string& pci_bus_id, const std::string& name,
       std::chrono::milliseconds limit = std::chrono::seconds(5));
  ~Nvml();
  NvmlSnapshot snapshot() const;
  NvmlFacts facts() const;
  // Takes a little over a second. The window begins and ends where the counter, which moves in
  // steps of up to 0.1 s, has just moved.
  NvmlPower mean_power() const;
  // "" where unknown.
  std::string driver_version() const;

 private:
  template <class Answer>
  Answer answer(Answer (*question)(const NvmlApi&)) const;

  std::chrono::milliseconds limit_;
  mutable std::shared_ptr<NvmlApi> api_;
};

// Driver version from NVML or /proc; "" where there is no driver.
std::string installed_driver();

}  // namespace rooflash
