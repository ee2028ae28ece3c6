// rooflash-worker: runs the cases of one device for the driver (worker/protocol.hpp).
//
//   rooflash-worker               requests on stdin, replies on stdout
//   rooflash-worker --devices     the CUDA devices as one line of JSON; exit code 77 where there is
//                                 none
//   rooflash-worker --code-sizes  a line of JSON for each kernel of this executable; needs no GPU
#include <unistd.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "common/code_size.hpp"
#include "core/descriptors.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/gpu_spec.hpp"
#include "record/json.hpp"
#include "record/reader.hpp"
#include "worker/loop/loop.hpp"

namespace rooflash {
namespace {

#ifndef ROOFLASH_WITH_CUDA
[[noreturn]] void no_cuda() {
  throw Error(ExitCode::no_gpu, "this rooflash was built without CUDA",
              "build with -DROOFLASH_CUDA=ON on a machine with the CUDA toolkit, or use --device "
              "sim:h200");
}
std::unique_ptr<Backend> cuda_backend(int) {
  no_cuda();
}
std::vector<DeviceInfo> all_cuda_devices() {
  no_cuda();
}
#else
std::unique_ptr<Backend> cuda_backend(int ordinal) {
  return make_cuda_backend(ordinal);
}
std::vector<DeviceInfo> all_cuda_devices() {
  return cuda_devices();
}
#endif

std::unique_ptr<Backend> make_backend(const std::string& device) {
  const char* const gpus = std::getenv(kGpusVariable);
  if (gpus != nullptr && *gpus != '\0') add_gpu_specs(read_text(gpus), gpus);
  constexpr std::string_view kSim = "sim:";
  constexpr std::string_view kCuda = "cuda:";
  if (device.starts_with(kSim)) return make_sim_backend(device.substr(kSim.size()));
  if (device.starts_with(kCuda)) {
    int ordinal = -1;
    const char* const end = device.data() + device.size();
    const auto [rest, error] = std::from_chars(device.data() + kCuda.size(), end, ordinal);
    if (error == std::errc() && rest == end && ordinal >= 0) return cuda_backend(ordinal);
  }
  throw UsageError("unknown device " + printable(device, 60), "devices are cuda:0 and sim:h200");
}

int list_devices() {
  try {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const DeviceInfo& device : all_cuda_devices()) list.push_back(to_json(device));
    std::puts(dump_line(list).c_str());
    return 0;
  } catch (const Error& error) {
    std::puts(error_line(error).c_str());
    return static_cast<int>(error.code());
  }
}

int list_code_sizes() {
  for (const auto& [kernel, bytes] : own_code_sizes()) {
    const auto& [sm, symbol] = kernel;
    std::puts(
        dump_line(nlohmann::ordered_json{{"symbol", symbol}, {"sm", sm}, {"code_bytes", bytes}})
            .c_str());
  }
  return 0;
}

}  // namespace
}  // namespace rooflash

int main(int argc, char** argv) {
  rooflash::fill_standard_descriptors();
  if (argc == 2 && std::string_view(argv[1]) == "--devices") return rooflash::list_devices();
  if (argc == 2 && std::string_view(argv[1]) == "--code-sizes") return rooflash::list_code_sizes();
  if (argc != 1) {
    std::fputs(
        "usage: rooflash-worker [--devices | --code-sizes]\nrooflash starts it; see `rooflash "
        "--help`.\n",
        stderr);
    return static_cast<int>(rooflash::ExitCode::usage);
  }
  const int out = rooflash::take_stdout();
  const int code = rooflash::serve(STDIN_FILENO, out, rooflash::make_backend);
  // _exit: the thread that reads stdin is still running.
  std::fflush(nullptr);
  _exit(code);
}
