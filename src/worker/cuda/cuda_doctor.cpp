#include "worker/cuda/cuda_doctor.hpp"

#include <cuda_runtime.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "core/units.hpp"
#include "gpu/check.hpp"
#include "gpu/device.hpp"
#include "measure/gemm.hpp"

namespace rooflash {
namespace {

constexpr double kCopyBytes = 2147483648.0;  // 2 GiB
constexpr double kCopyTolerance = 0.02;      // a few MB stay in L2
constexpr double kGemmExcess = 1.1;          // tiles at the edge are padded
constexpr int kGemmSize = 8192;

DoctorCheck missing(std::string name, const NvmlFacts& facts, const std::string& field) {
  const auto found = facts.missing.find(field);
  return {std::move(name), true, found != facts.missing.end() ? found->second : "not known", ""};
}

DoctorCheck clocks_check(const NvmlFacts& facts, const NvmlSnapshot& now) {
  if (!now.sm_clock_mhz) return missing("clocks", facts, "sm_clock_max_mhz");
  DoctorCheck check{"clocks", true,
                    fmt::format("SM {:.0f} MHz of {:.0f}, not locked by rooflash",
                                *now.sm_clock_mhz, facts.sm_clock_max_mhz.value_or(0)),
                    ""};
  if (now.throttle && !now.throttle->empty()) {
    check.ok = false;
    check.detail += fmt::format("; held down by {}", fmt::join(*now.throttle, ", "));
    check.fix =
        "let the card cool or end other work on it, and look at nvidia-smi -q -d PERFORMANCE";
  }
  return check;
}

DoctorCheck processes_check(const DeviceInfo& device) {
  if (!device.other_processes) return {"other processes", true, "not known", ""};
  const std::int64_t others = *device.other_processes;
  if (others == 0) return {"other processes", true, "none on this GPU", ""};
  return {"other processes", false, fmt::format("{} on this GPU", others),
          "end them (nvidia-smi lists them): times and HBM counters include their work"};
}

DoctorCheck mig_check(const NvmlFacts& facts) {
  if (!facts.mig) return missing("MIG", facts, "mig");
  if (!*facts.mig) return {"MIG", true, "off", ""};
  return {"MIG", false, "on: the roofs of the whole card do not hold for a slice",
          "have an administrator switch it off: nvidia-smi -mig 0"};
}

std::string percent_off(double value, double expected) {
  return fmt::format("{:+.2f} %", 100 * (value / expected - 1));
}

DoctorCheck copy_check(const Counters& counted) {
  DoctorCheck check{"counter proof: copy", true, "", ""};
  if (counted.status != "ok") {
    return {check.name, false, counted.reason, "see the line above: rows go on without counters"};
  }
  const double read = counted.hbm_read_bytes.value_or(0);
  const double written = counted.hbm_write_bytes.value_or(0);
  check.ok = std::abs(read / kCopyBytes - 1) <= kCopyTolerance &&
             std::abs(written / kCopyBytes - 1) <= kCopyTolerance;
  check.detail = fmt::format("2 GiB copied: HBM bytes read {}, written {}",
                             percent_off(read, kCopyBytes), percent_off(written, kCopyBytes));
  if (!check.ok)
    check.fix = "end other work on the GPU and repeat; do not trust HBM bytes until then";
  return check;
}

DoctorCheck gemm_check(const Counters& counted, double flops) {
  DoctorCheck check{"counter proof: GEMM", true, "", ""};
  if (counted.status != "ok") {
    return {check.name, false, counted.reason, "see the line above: rows go on without counters"};
  }
  if (!counted.tensor_ops) {
    return {check.name, true, "tensor operations are not counted on this chip", ""};
  }
  const double ratio = *counted.tensor_ops / flops;
  check.ok = ratio >= 1 && ratio <= kGemmExcess;
  check.detail = fmt::format("{0}^3 bf16: {1:.4f} of the formula's operations", kGemmSize, ratio);
  if (!check.ok) check.fix = "do not trust tensor operations on this card";
  return check;
}

std::vector<DoctorCheck> counter_checks(CounterSession& counters, const Timer& timer,
                                        cudaStream_t stream) {
  std::vector<DoctorCheck> checks;
  const auto prepare = [&] { timer.flush(); };
  const auto bytes = static_cast<std::size_t>(kCopyBytes);
  Counters copied;
  {
    const DeviceBuffer from(bytes);
    const DeviceBuffer to(bytes);
    ROOFLASH_CUDA(cudaMemsetAsync(from.get(), 1, bytes, stream));
    const auto copy = [&] {
      ROOFLASH_CUDA(cudaMemcpyAsync(to.get(), from.get(), bytes, cudaMemcpyDeviceToDevice, stream));
    };
    copy();  // the first use of memory is not typical
    ROOFLASH_CUDA(cudaStreamSynchronize(stream));
    copied = counters.measure(DType::bf16, prepare, copy, {});
  }
  const bool permitted = copied.status == "ok" || copied.status == "invalid";
  checks.push_back({"counters", permitted,
                    permitted ? counters.library() : copied.status + ": " + copied.reason,
                    permitted ? "" : "rows are timed all the same; their counters stay empty"});
  checks.push_back(copy_check(copied));
  try {
    const Gemm gemm(DType::bf16, kGemmSize, stream);
    gemm(stream);
    ROOFLASH_CUDA(cudaStreamSynchronize(stream));
    checks.push_back(gemm_check(counters.measure(DType::bf16, prepare, [&] { gemm(stream); }, {}),
                                gemm.flops()));
  } catch (const Error& error) {
    checks.push_back(
        {"counter proof: GEMM", false, error.what(), "see that cuBLAS fits the driver"});
  }
  return checks;
}

}  // namespace

std::vector<DoctorCheck> check_device(const DeviceInfo& device, const Nvml& nvml,
                                      CounterSession& counters, const Timer& timer,
                                      cudaStream_t stream) {
  const NvmlFacts facts = nvml.facts();
  const NvmlSnapshot now = nvml.snapshot();
  std::vector<DoctorCheck> checks;
  const std::string driver = nvml.driver_version();
  checks.push_back({"driver", true, driver.empty() ? "version not known" : driver, ""});
  checks.push_back({"toolkit", true, "built with CUDA " + toolkit_version(), ""});
  checks.push_back({"GPU", true,
                    fmt::format("{}, sm_{}, {} SMs, {}, L2 {}", device.name,
                                device.compute_capability.value_or(0), device.sm_count.value_or(0),
                                format_gib(static_cast<double>(device.memory_bytes.value_or(0))),
                                format_gib(static_cast<double>(device.l2_bytes.value_or(0)))),
                    ""});
  checks.push_back(clocks_check(facts, now));
  checks.push_back(processes_check(device));
  checks.push_back(facts.power_limit_w
                       ? DoctorCheck{"power cap", true,
                                     fmt::format("{:.0f} W, {:.0f} W drawn now",
                                                 *facts.power_limit_w, now.power_w.value_or(0)),
                                     ""}
                       : missing("power cap", facts, "power_limit_w"));
  checks.push_back(facts.ecc ? DoctorCheck{"ECC", true, *facts.ecc ? "on" : "off", ""}
                             : missing("ECC", facts, "ecc"));
  checks.push_back(mig_check(facts));
  try {
    for (DoctorCheck& check : counter_checks(counters, timer, stream)) {
      checks.push_back(std::move(check));
    }
  } catch (const Error& error) {
    checks.push_back({"counters", false, error.what(), "free GPU memory: the proof needs 4 GiB"});
  }
  return checks;
}

}  // namespace rooflash
