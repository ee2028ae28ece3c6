#include "worker/doctor/device_checks.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/units.hpp"

namespace rooflash {
namespace {

using enum CheckStatus;

std::string cuda_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

// A figure that NVML does not give: no fault of the machine, but a fault may hide behind it.
DoctorCheck not_known(const char* id, const std::map<std::string, std::string>& missing,
                      const char* field) {
  const auto found = missing.find(field);
  return {id, warn, "not known: " + (found != missing.end() ? found->second : "no reason given"),
          "look at nvidia-smi -q before you trust small differences"};
}

DoctorCheck driver_check(const DeviceState& state) {
  const std::string driver = state.driver.empty() ? "of unknown version" : state.driver;
  const std::string built = cuda_text(state.toolkit_cuda);
  DoctorCheck check{"driver", ok,
                    fmt::format("{} serves CUDA {}, built with {}", driver,
                                state.driver_cuda > 0 ? cuda_text(state.driver_cuda) : "?", built),
                    ""};
  if (state.driver_cuda > 0 && state.driver_cuda < state.toolkit_cuda) {
    // Within one major version an older driver runs newer code, except for what it has no entry of.
    check.status = warn;
    check.fix = fmt::format("install a driver for CUDA {}, or build with CUDA {}", built,
                            cuda_text(state.driver_cuda));
  }
  return check;
}

DoctorCheck cublas_check(const DeviceState& state) {
  if (!state.cublas.empty()) return {"cublas", ok, "version " + state.cublas, ""};
  return {"cublas", fail, "cuBLAS gives no version: the roof of products cannot be measured",
          "install the cuBLAS of the toolkit built with (libcublas), or add its folder to "
          "LD_LIBRARY_PATH"};
}

DoctorCheck cudnn_check(const VendorLibrary& cudnn) {
  if (cudnn.missing.empty()) {
    return {"cudnn", ok, fmt::format("version {} in {}", cudnn.version, cudnn.folder), ""};
  }
  return {"cudnn", warn, cudnn.missing + ": there is no cuDNN to compare with",
          "build with cudnn-frontend (scripts/setup.sh --cudnn); at run time install cuDNN 9.19 or "
          "newer, or name its folder in ROOFLASH_CUDNN"};
}

DoctorCheck gpu_check(const DeviceInfo& device) {
  return {"gpu", ok,
          fmt::format("{}, sm_{}, {} SMs, {}, L2 {}", device.name,
                      device.compute_capability.value_or(0), device.sm_count.value_or(0),
                      format_gib(static_cast<double>(device.memory_bytes.value_or(0))),
                      format_gib(static_cast<double>(device.l2_bytes.value_or(0)))),
          ""};
}

DoctorCheck clocks_check(const DeviceState& state) {
  if (!state.now.sm_clock_mhz) return not_known("clocks", state.now.missing, "sm_clock_mhz");
  std::string detail = fmt::format("SM {:.0f} MHz", *state.now.sm_clock_mhz);
  if (state.facts.sm_clock_max_mhz) {
    detail += fmt::format(" now, {:.0f} at most", *state.facts.sm_clock_max_mhz);
  }
  return {"clocks", ok, detail, ""};
}

DoctorCheck clocks_set_check(const DeviceState& state) {
  if (!state.now.clocks_set) return not_known("clocks_set", state.now.missing, "throttle");
  if (!*state.now.clocks_set) return {"clocks_set", ok, "by the card itself", ""};
  return {"clocks_set", warn,
          "someone locked the clocks or set application clocks: times repeat well, and are not "
          "those of the card as delivered",
          "as root: nvidia-smi -rgc; nvidia-smi -rmc; nvidia-smi -rac"};
}

DoctorCheck throttle_check(const DeviceState& state) {
  if (!state.now.throttle) return not_known("throttle", state.now.missing, "throttle");
  const std::vector<std::string>& reasons = *state.now.throttle;
  if (reasons.empty()) return {"throttle", ok, "nothing holds the clock down now", ""};
  // The power cap is normal under load; the others are not.
  const bool normal = std::all_of(reasons.begin(), reasons.end(), [](const std::string& reason) {
    return reason == "sw_power_cap" || reason == "sync_boost";
  });
  return {"throttle", normal ? warn : fail,
          fmt::format("the clock is held down now by {}", fmt::join(reasons, ", ")),
          "let the card cool, end other work on it, and look at nvidia-smi -q -d PERFORMANCE"};
}

DoctorCheck processes_check(const DeviceState& state) {
  if (!state.device.other_processes) {
    return not_known("other_processes", state.facts.missing, "other_processes");
  }
  const std::int64_t others = *state.device.other_processes;
  if (others == 0) return {"other_processes", ok, "none on this GPU", ""};
  return {"other_processes", fail,
          fmt::format("{} on this GPU: times and HBM bytes include their work", others),
          "end them: nvidia-smi --query-compute-apps=pid,name,used_memory --format=csv"};
}

DoctorCheck power_check(const DeviceState& state) {
  const NvmlFacts& facts = state.facts;
  if (!facts.power_limit_w) return not_known("power_limit", facts.missing, "power_limit_w");
  DoctorCheck check{"power_limit", ok, fmt::format("{:.0f} W", *facts.power_limit_w), ""};
  if (state.now.power_w) check.detail += fmt::format(", {:.0f} W drawn now", *state.now.power_w);
  if (facts.power_limit_default_w && *facts.power_limit_w < *facts.power_limit_default_w - 0.5) {
    check.status = warn;
    check.detail += fmt::format(
        "; below the default of {:.0f} W: sustained rates are lower than on "
        "other cards of this model",
        *facts.power_limit_default_w);
    check.fix = fmt::format("as root: nvidia-smi -pl {:.0f}", *facts.power_limit_default_w);
  }
  return check;
}

DoctorCheck persistence_check(const DeviceState& state) {
  if (!state.facts.persistence) {
    return not_known("persistence", state.facts.missing, "persistence");
  }
  if (*state.facts.persistence) return {"persistence", ok, "on", ""};
  return {"persistence", warn,
          "off: the driver unloads between runs, and each run starts on a card that has to wake up",
          "as root: nvidia-smi -pm 1, or start nvidia-persistenced"};
}

DoctorCheck ecc_check(const DeviceState& state) {
  if (!state.facts.ecc) return not_known("ecc", state.facts.missing, "ecc");
  return {"ecc", ok, *state.facts.ecc ? "on" : "off", ""};
}

DoctorCheck mig_check(const DeviceState& state) {
  if (!state.facts.mig) return not_known("mig", state.facts.missing, "mig");
  if (!*state.facts.mig) return {"mig", ok, "off", ""};
  return {"mig", fail, "on: the roofs of the whole card do not hold for a slice",
          "take a GPU without MIG, or as root: nvidia-smi -mig 0"};
}

// NVML tells nothing at all, for one reason.
bool nvml_is_silent(const DeviceState& state) {
  return !state.now.sm_clock_mhz && !state.now.throttle && !state.facts.power_limit_w &&
         !state.facts.compute_processes && !state.facts.mig;
}

std::string percent_off(double value, double expected) {
  return fmt::format("{:+.2f} %", 100 * (value / expected - 1));
}

std::string counters_fix(const std::string& status) {
  if (status == "no_permission") {
    return "as root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > "
           "/etc/modprobe.d/nvidia-counters.conf && update-initramfs -u && reboot; in a container: "
           "docker run --cap-add=SYS_ADMIN; or --counters none, for times alone";
  }
  if (status == "busy") return "dcgmi profile --pause, and --resume when done";
  if (status == "other_tool") {
    return "run without the profiler, or with --counters force where none is attached";
  }
  if (status == "invalid") return "end other work on this GPU and repeat";
  return "install the CUPTI of the toolkit built with, or name it in ROOFLASH_CUPTI; or --counters "
         "none, for times alone";
}

DoctorCheck cupti_check(const CounterLibrary& library) {
  DoctorCheck check{"cupti", ok,
                    fmt::format("{}, API version {}, built with {}", library.path, library.version,
                                library.headers),
                    ""};
  if (library.version < library.headers) {
    check.status = warn;
    check.fix =
        "install the CUPTI of the toolkit built with, or name it in ROOFLASH_CUPTI, where counters "
        "fail";
  }
  return check;
}

}  // namespace

std::vector<DoctorCheck> device_checks(const DeviceState& state) {
  std::vector<DoctorCheck> checks{driver_check(state), cublas_check(state),
                                  cudnn_check(state.cudnn), gpu_check(state.device)};
  if (nvml_is_silent(state)) {
    DoctorCheck check = not_known("nvml", state.now.missing, "sm_clock_mhz");
    check.detail = "clocks, power, throttling and other processes are " + check.detail;
    checks.push_back(std::move(check));
    return checks;
  }
  for (const auto& check : {clocks_check, clocks_set_check, throttle_check, processes_check,
                            power_check, persistence_check, ecc_check, mig_check}) {
    checks.push_back(check(state));
  }
  return checks;
}

std::vector<DoctorCheck> copy_checks(const CounterLibrary& library, const Counters& counted) {
  constexpr double kTolerance = 0.02;  // a few MB stay in L2
  std::vector<DoctorCheck> checks;
  if (library.version != 0) checks.push_back(cupti_check(library));
  if (counted.status != "ok") {
    checks.push_back(
        {"counters", fail, counted.status + ": " + counted.reason, counters_fix(counted.status)});
    return checks;
  }
  checks.push_back({"counters", ok, "can be read", ""});
  const double read = counted.hbm_read_bytes.value_or(0);
  const double written = counted.hbm_write_bytes.value_or(0);
  const bool right = std::abs(read / kProofCopyBytes - 1) <= kTolerance &&
                     std::abs(written / kProofCopyBytes - 1) <= kTolerance;
  checks.push_back(
      {"counters.copy", right ? ok : fail,
       fmt::format("2 GiB copied: HBM bytes read {}, written {}",
                   percent_off(read, kProofCopyBytes), percent_off(written, kProofCopyBytes)),
       right ? ""
             : "end other work on this GPU and repeat; HBM bytes are not to be "
               "trusted until then"});
  return checks;
}

DoctorCheck gemm_check(const Counters& counted, double flops, const std::string& what) {
  constexpr double kMostExcess = 1.1;  // tiles at the edge are padded
  if (counted.status != "ok") {
    return {"counters.gemm", fail, what + ": " + counted.status + ": " + counted.reason,
            "tensor operations are not to be trusted on this card"};
  }
  if (!counted.tensor_ops) {
    return {"counters.gemm", ok, "tensor operations are not counted on this chip", ""};
  }
  const double ratio = *counted.tensor_ops / flops;
  const bool right = ratio >= 1 && ratio <= kMostExcess;
  return {"counters.gemm", right ? ok : fail,
          fmt::format("{}: {:.4f} of the formula's operations", what, ratio),
          right ? "" : "tensor operations are not to be trusted on this card"};
}

}  // namespace rooflash
