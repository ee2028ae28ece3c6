#include "cli/devices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/gpu_spec.hpp"
#include "sweep/list_grammar.hpp"
#include "worker/driver/connection.hpp"

namespace rooflash {
namespace {

constexpr std::string_view kFlag = "--device";
constexpr std::string_view kAutoGpu = "h200";  // the simulated card that was calibrated

[[noreturn]] void fail_unknown(std::string_view element) {
  throw UsageError(
      fmt::format("{}: '{}' is not a device", kFlag, printable(element)),
      "write auto, all, an index (0,1), cuda:N, or sim:GPU (see `rooflash list devices`)");
}

// The GPUs of the machine, asked for once.
class Cuda {
 public:
  const std::vector<DeviceInfo>& all() {
    if (!devices_) devices_ = list_cuda_devices(worker_path());
    return *devices_;
  }
  const DeviceInfo& at(std::string_view text, std::string_view element) {
    std::size_t index = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
    if (parsed.ptr != text.data() + text.size() || text.empty()) fail_unknown(element);
    if (parsed.ec != std::errc() || index >= all().size()) {
      throw UsageError(fmt::format("{}: there is no GPU {}; this machine has {}", kFlag,
                                   printable(text), all().size()),
                       fmt::format("indices are 0 to {}", all().size() - 1));
    }
    return all()[index];
  }

 private:
  std::optional<std::vector<DeviceInfo>> devices_;
};

void choose_auto(Cuda& cuda, DeviceChoice& choice) {
  try {
    choice.devices.push_back(cuda.all().front());
    choice.note = fmt::format("device {} ({})", choice.devices.front().device,
                              printable(choice.devices.front().name));
  } catch (const Error& error) {
    if (error.code() != ExitCode::no_gpu) throw;
    choice.devices.push_back(simulated_device(require_gpu(kAutoGpu)));
    choice.note = fmt::format("no GPU ({}); simulating {}: times are predicted, not measured",
                              error.what(), choice.devices.front().device);
  }
}

}  // namespace

DeviceChoice choose_devices(const std::vector<std::string>& elements) {
  DeviceChoice choice;
  Cuda cuda;
  for (const std::string& list : elements) {
    for (const std::string& element : parse_elements(list, kFlag)) {
      const std::string_view text = element;
      if (text == "auto") {
        choose_auto(cuda, choice);
      } else if (text == "all") {
        const auto& all = cuda.all();
        choice.devices.insert(choice.devices.end(), all.begin(), all.end());
      } else if (text.starts_with("sim:")) {
        choice.devices.push_back(simulated_device(require_gpu(text.substr(4))));
      } else if (text.starts_with("cuda:")) {
        choice.devices.push_back(cuda.at(text.substr(5), text));
      } else if (!text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos) {
        choice.devices.push_back(cuda.at(text, text));
      } else {
        fail_unknown(text);
      }
    }
  }
  // A device named twice is used once.
  std::vector<DeviceInfo> unique;
  for (DeviceInfo& device : choice.devices) {
    const bool seen = std::any_of(unique.begin(), unique.end(), [&](const DeviceInfo& other) {
      return other.device == device.device;
    });
    if (!seen) unique.push_back(std::move(device));
  }
  choice.devices = std::move(unique);
  return choice;
}

void announce(const DeviceChoice& choice) {
  if (!choice.note.empty()) print_message(choice.note);
  for (const DeviceInfo& device : choice.devices) {
    const bool simulated = device.simulated;
    if (choice.note.empty()) {
      print_message(fmt::format("device {} ({}){}", device.device, printable(device.name),
                                simulated ? ", simulated: times are predicted, not measured" : ""));
    }
    if (simulated && !require_gpu(device.device.substr(4)).validated) {
      print_message(fmt::format("warning: the model of {} was not validated against a real card",
                                device.device));
    }
  }
}

}  // namespace rooflash
