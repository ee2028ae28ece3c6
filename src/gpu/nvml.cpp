#include "gpu/nvml.hpp"

#include <fmt/format.h>

#include <array>
#include <fstream>
#include <future>
#include <thread>
#include <utility>

#include "gpu/nvml_api.hpp"

namespace rooflash {
namespace {

constexpr unsigned kClockSm = 1;
constexpr unsigned kClockMemory = 2;
constexpr unsigned kTemperatureGpu = 0;
constexpr unsigned long long kClocksSet = 0x2;  // by a user: application or locked clocks

// What no card reads, nor zero: NVML gives such figures for sensors that are not there.
constexpr double kMaxClockMhz = 10e3;
constexpr double kMaxPowerW = 10e3;
constexpr double kMaxTemperatureC = 200;
constexpr unsigned kMaxProcesses = 1000;

// Reasons other than "idle" and "clocks set by the user", which hold nothing down.
constexpr std::array<std::pair<unsigned long long, const char*>, 6> kReasons{{
    {0x4, "sw_power_cap"},
    {0x8, "hw_slowdown"},
    {0x10, "sync_boost"},
    {0x20, "sw_thermal"},
    {0x40, "hw_thermal"},
    {0x80, "hw_power_brake"},
}};

std::string driver_from_proc() {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Tue ..."
  std::ifstream file("/proc/driver/nvidia/version");
  std::string word;
  while (file >> word) {
    const bool version = word.find('.') != std::string::npos &&
                         word.find_first_not_of("0123456789.") == std::string::npos;
    if (version) return word;
  }
  return {};
}

// What `ask` gives; nothing where it takes longer than `limit`. A driver can hang, and a thread
// that is inside it cannot be ended: it is left behind, with copies of all that it uses.
template <class Ask>
auto within(std::chrono::milliseconds limit, Ask ask) -> std::optional<decltype(ask())> {
  std::promise<decltype(ask())> promise;
  auto answer = promise.get_future();
  std::thread([own = std::optional<Ask>(std::move(ask)), promise = std::move(promise)]() mutable {
    auto given = (*own)();
    own.reset();  // first, so that the caller is the last owner of what `ask` holds
    promise.set_value(std::move(given));
  }).detach();
  if (answer.wait_for(limit) != std::future_status::ready) return std::nullopt;
  return answer.get();
}

std::shared_ptr<NvmlApi> without_answer(std::chrono::milliseconds limit) {
  return std::make_shared<NvmlApi>(fmt::format(
      "NVML did not answer within {} ms: the driver hangs; look for Xid in dmesg", limit.count()));
}

// Reads one figure of a device, or notes under `field` why there is none.
struct Reader {
  const NvmlApi& api;
  std::map<std::string, std::string>& missing;

  template <class Function, class... Args>
  std::optional<double> operator()(const char* field, double scale, double most, Function* function,
                                   Args... args) const {
    unsigned raw = 0;
    std::string error = api.ask(function, args..., &raw);
    const double value = raw * scale;
    if (error.empty() && (value <= 0 || value > most)) {
      error = fmt::format("NVML gave {:.6g}, which no card reads", value);
    }
    if (error.empty()) return value;
    missing[field] = error;
    return std::nullopt;
  }
};

NvmlSnapshot snapshot_of(const NvmlApi& api) {
  NvmlSnapshot result;
  const Reader read{api, result.missing};
  result.sm_clock_mhz = read("sm_clock_mhz", 1, kMaxClockMhz, api.clock, kClockSm);
  result.memory_clock_mhz = read("memory_clock_mhz", 1, kMaxClockMhz, api.clock, kClockMemory);
  result.power_w = read("power_w", 1e-3, kMaxPowerW, api.power);
  result.temperature_c =
      read("temperature_c", 1, kMaxTemperatureC, api.temperature, kTemperatureGpu);
  unsigned long long bits = 0;
  const std::string error = api.ask(api.reasons, &bits);
  if (!error.empty()) {
    result.missing["throttle"] = error;
    return result;
  }
  result.clocks_set = (bits & kClocksSet) != 0;
  result.throttle.emplace();
  for (const auto& [bit, reason] : kReasons) {
    if ((bits & bit) != 0) result.throttle->emplace_back(reason);
  }
  return result;
}

NvmlFacts facts_of(const NvmlApi& api) {
  NvmlFacts result;
  const Reader read{api, result.missing};
  result.sm_clock_max_mhz = read("sm_clock_max_mhz", 1, kMaxClockMhz, api.max_clock, kClockSm);
  result.memory_clock_max_mhz =
      read("memory_clock_max_mhz", 1, kMaxClockMhz, api.max_clock, kClockMemory);
  result.power_limit_w = read("power_limit_w", 1e-3, kMaxPowerW, api.power_limit);
  result.power_limit_default_w =
      read("power_limit_default_w", 1e-3, kMaxPowerW, api.power_limit_default);
  const auto read_switch = [&](const char* field, auto* function, auto... pending) {
    unsigned on = 0;
    const std::string error = api.ask(function, &on, pending...);
    if (error.empty()) return std::optional<bool>(on != 0);
    result.missing[field] = error;
    return std::optional<bool>();
  };
  unsigned pending = 0;
  result.persistence = read_switch("persistence", api.persistence);
  result.ecc = read_switch("ecc", api.ecc, &pending);
  result.mig = read_switch("mig", api.mig, &pending);

  std::array<NvmlProcessInfo, kMaxProcesses> processes{};
  unsigned count = kMaxProcesses;
  const std::string error = api.ask(api.processes, &count, processes.data());
  if (error.empty()) {
    result.compute_processes = count;
  } else {
    result.missing["other_processes"] = error;
  }
  return result;
}

NvmlPower mean_power_of(const NvmlApi& api) {
  using Clock = std::chrono::steady_clock;
  constexpr auto kWindow = std::chrono::milliseconds(1200);
  constexpr auto kStepLimit = std::chrono::seconds(1);
  struct Reading {
    unsigned long long mj = 0;
    Clock::time_point at;
  };
  NvmlPower result;
  const auto read = [&](Reading& reading) {
    if (result.missing.empty()) result.missing = api.ask(api.energy, &reading.mj);
    reading.at = Clock::now();
  };
  // The first reading after the counter's next step.
  const auto next_step = [&] {
    Reading first;
    read(first);
    Reading reading = first;
    while (result.missing.empty() && reading.mj == first.mj) {
      if (reading.at - first.at > kStepLimit) {
        result.missing = "NVML: the energy counter stood still for a second under load";
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      read(reading);
    }
    return reading;
  };
  const Reading begin = next_step();
  if (result.missing.empty()) std::this_thread::sleep_until(begin.at + kWindow);
  const Reading end = next_step();
  if (!result.missing.empty()) return result;
  result.window_s = std::chrono::duration<double>(end.at - begin.at).count();
  const double watts = 1e-3 * static_cast<double>(end.mj - begin.mj) / result.window_s;
  if (end.mj < begin.mj || watts > kMaxPowerW) {
    result.missing = fmt::format("NVML's energy counter went from {} to {} mJ in {:.3g} s",
                                 begin.mj, end.mj, result.window_s);
    return result;
  }
  result.watts = watts;
  return result;
}

std::string driver_version_of(const NvmlApi& api) {
  char text[96] = {};
  const bool known = api.initialised && api.driver_version != nullptr &&
                     api.driver_version(text, sizeof(text)) == 0;
  return known ? text : driver_from_proc();
}

}  // namespace

Nvml::Nvml(const std::string& pci_bus_id, const std::string& name, std::chrono::milliseconds limit)
    : limit_(limit) {
  const auto opened =
      within(limit, [pci_bus_id, name] { return std::make_shared<NvmlApi>(pci_bus_id, name); });
  api_ = opened ? *opened : without_answer(limit);
}

Nvml::~Nvml() = default;

template <class Answer>
Answer Nvml::answer(Answer (*question)(const NvmlApi&)) const {
  if (api_->unusable.empty()) {
    auto given = within(limit_, [api = api_, question] { return question(*api); });
    if (given) return std::move(*given);
    api_ = without_answer(limit_);  // it is not asked again
  }
  return question(*api_);
}

NvmlSnapshot Nvml::snapshot() const {
  return answer(snapshot_of);
}

NvmlFacts Nvml::facts() const {
  return answer(facts_of);
}

NvmlPower Nvml::mean_power() const {
  return answer(mean_power_of);
}

std::string Nvml::driver_version() const {
  return answer(driver_version_of);
}

std::string installed_driver() {
  return driver_from_proc();
}

}  // namespace rooflash
