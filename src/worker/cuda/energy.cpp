#include "worker/cuda/energy.hpp"

#include <chrono>
#include <cstdint>
#include <future>

namespace rooflash {

void measure_energy(Timer& timer, const Nvml& nvml, const Launch& launch, Row& row) {
  std::future<NvmlPower> asked =
      std::async(std::launch::async, [&nvml] { return nvml.mean_power(); });
  const double us = timer.keep_busy(
      launch, [&] { return asked.wait_for(std::chrono::seconds(0)) == std::future_status::ready; });
  const NvmlPower power = asked.get();
  if (!power.watts) {
    row.missing["energy"] = power.missing;
    return;
  }
  if (!(row.model.flops > 0)) {
    row.missing["energy"] = "no query sees a key: there are no FLOPs to relate it to";
    return;
  }
  const double joules = *power.watts * us * 1e-6;
  row.energy = Energy{joules, joules * 1e12 / row.model.flops, power.window_s,
                      static_cast<std::int64_t>(power.window_s * 1e6 / us)};
}

}  // namespace rooflash
