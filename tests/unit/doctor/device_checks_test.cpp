// Each thing that can be wrong with a machine: found, weighed, and told with the way out.
#include "worker/doctor/device_checks.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <set>
#include <string>

#include "core/error.hpp"

namespace rooflash {
namespace {

using enum CheckStatus;

DeviceState sound() {
  DeviceState state;
  state.device.name = "NVIDIA H200";
  state.device.other_processes = 0;
  state.driver = "580.95.05";
  state.driver_cuda = 13000;
  state.toolkit_cuda = 13000;
  state.cublas = "13.1.0";
  state.cudnn = {"9.19.0", "0011223344556677", "/opt/cudnn", ""};
  state.now.sm_clock_mhz = 345;
  state.now.power_w = 76;
  state.now.throttle.emplace();
  state.now.clocks_set = false;
  state.facts.sm_clock_max_mhz = 1980;
  state.facts.power_limit_w = 700;
  state.facts.power_limit_default_w = 700;
  state.facts.persistence = true;
  state.facts.ecc = true;
  state.facts.mig = false;
  state.facts.compute_processes = 0;
  return state;
}

// The one check of `state` that is not ok.
DoctorCheck only_fault(const DeviceState& state) {
  DoctorCheck fault;
  for (const DoctorCheck& check : device_checks(state)) {
    if (check.status == ok) continue;
    EXPECT_EQ(fault.id, "") << "a second fault: " << check.id;
    fault = check;
  }
  return fault;
}

void expect_fault(const DeviceState& state, const std::string& id, CheckStatus status,
                  const std::string& detail, const std::string& fix) {
  const DoctorCheck fault = only_fault(state);
  EXPECT_EQ(fault.id, id);
  EXPECT_EQ(fault.status, status) << id;
  EXPECT_NE(fault.detail.find(detail), std::string::npos) << fault.detail;
  EXPECT_NE(fault.fix.find(fix), std::string::npos) << fault.fix;
}

TEST(DeviceChecks, SoundMachineHasNoFault) {
  std::set<std::string> ids;
  for (const DoctorCheck& check : device_checks(sound())) {
    EXPECT_EQ(check.status, ok) << check.id << ": " << check.detail;
    EXPECT_EQ(check.fix, "") << check.id;
    EXPECT_NE(check.detail, "") << check.id;
    EXPECT_TRUE(ids.insert(check.id).second) << check.id << " twice";
  }
  EXPECT_EQ(ids, (std::set<std::string>{"driver", "cublas", "cudnn", "gpu", "clocks", "clocks_set",
                                        "throttle", "other_processes", "power_limit", "persistence",
                                        "ecc", "mig"}));
}

TEST(DeviceChecks, Software) {
  DeviceState state = sound();
  state.driver_cuda = 12080;
  expect_fault(state, "driver", warn, "580.95.05 serves CUDA 12.8, built with 13.0",
               "a driver for CUDA 13.0");
  state = sound();
  state.cublas.clear();
  expect_fault(state, "cublas", fail, "cuBLAS", "LD_LIBRARY_PATH");
  state = sound();
  state.cudnn = {"", "", "", "cuDNN 9.10.2 is older than 9.19"};
  expect_fault(state, "cudnn", warn, "cuDNN 9.10.2 is older than 9.19", "ROOFLASH_CUDNN");
}

TEST(DeviceChecks, WhatDisturbsARunFails) {
  DeviceState state = sound();
  state.device.other_processes = 2;
  expect_fault(state, "other_processes", fail, "2 on this GPU", "nvidia-smi");
  state = sound();
  state.facts.mig = true;
  expect_fault(state, "mig", fail, "slice", "nvidia-smi -mig 0");
  for (const char* reason : {"hw_slowdown", "sw_thermal", "hw_thermal", "hw_power_brake"}) {
    state = sound();
    state.now.throttle = {"sw_power_cap", reason};
    expect_fault(state, "throttle", fail, reason, "nvidia-smi -q -d PERFORMANCE");
  }
}

TEST(DeviceChecks, WhatMakesACardUnlikeOthersWarns) {
  DeviceState state = sound();
  state.facts.power_limit_w = 500;
  expect_fault(state, "power_limit", warn, "below the default of 700 W", "nvidia-smi -pl 700");
  state = sound();
  state.facts.persistence = false;
  expect_fault(state, "persistence", warn, "off", "nvidia-smi -pm 1");
  state = sound();
  state.now.clocks_set = true;
  expect_fault(state, "clocks_set", warn, "locked", "nvidia-smi -rgc");
  state = sound();
  state.now.throttle = {"sw_power_cap"};
  expect_fault(state, "throttle", warn, "sw_power_cap", "PERFORMANCE");
  state = sound();
  state.facts.ecc = false;
  for (const DoctorCheck& check : device_checks(state)) {
    if (check.id == "ecc") {
      EXPECT_EQ(check.detail, "off");
    }
    EXPECT_EQ(check.status, ok) << check.id;
  }
}

// A figure that is not there is never shown as a value, and says why.
TEST(DeviceChecks, WhatIsNotKnownWarnsWithTheReason) {
  DeviceState state = sound();
  state.facts.power_limit_w.reset();
  state.facts.missing["power_limit_w"] = "NVML error 3 (Not Supported)";
  expect_fault(state, "power_limit", warn, "not known: NVML error 3", "nvidia-smi");
  state = sound();
  state.device.other_processes.reset();
  state.facts.missing["other_processes"] = "NVML error 4";
  expect_fault(state, "other_processes", warn, "not known: NVML error 4", "nvidia-smi");
  DeviceState silent = sound();
  silent.device.other_processes.reset();
  silent.facts = {};
  silent.now = {};
  silent.now.missing["sm_clock_mhz"] = "no NVML library";
  expect_fault(silent, "nvml", warn, "other processes are not known: no NVML library",
               "nvidia-smi");
}

Counters copied(double read, double written) {
  Counters counters;
  counters.status = "ok";
  counters.hbm_read_bytes = read;
  counters.hbm_write_bytes = written;
  return counters;
}

const CounterLibrary kLibrary{"/usr/lib/libcupti.so.13", 130001, 130001};

TEST(CounterProof, CopyWithinTwoPerCent) {
  const auto status = [](double read, double written) {
    const auto checks =
        copy_checks(kLibrary, copied(read * kProofCopyBytes, written * kProofCopyBytes));
    EXPECT_EQ(checks.size(), 3U);
    EXPECT_EQ(checks[0].id, "cupti");
    EXPECT_EQ(checks[1].id, "counters");
    EXPECT_EQ(checks[2].id, "counters.copy");
    EXPECT_EQ(checks[2].fix.empty(), checks[2].status == ok);
    return checks[2].status;
  };
  EXPECT_EQ(status(1, 0.9963), ok);
  EXPECT_EQ(status(1.03, 1), fail);
  EXPECT_EQ(status(1, 0.5), fail);
  EXPECT_EQ(status(1, 0), fail);
}

TEST(CounterProof, FailureIsToldWithTheWayOut) {
  struct Case {
    const char* status;
    const char* fix;
  };
  for (const Case& one :
       {Case{"no_permission", "NVreg_RestrictProfilingToAdminUsers=0"},
        Case{"busy", "dcgmi profile --pause"}, Case{"other_tool", "--counters force"},
        Case{"unavailable", "ROOFLASH_CUPTI"}, Case{"invalid", "repeat"}}) {
    Counters counters;
    counters.status = one.status;
    counters.reason = "the cause";
    const auto checks = copy_checks({}, counters);
    ASSERT_EQ(checks.size(), 1U) << "no proof, and no version of a library that is not there";
    EXPECT_EQ(checks[0].id, "counters");
    EXPECT_EQ(checks[0].status, fail);
    EXPECT_EQ(checks[0].detail, std::string(one.status) + ": the cause");
    EXPECT_NE(checks[0].fix.find(one.fix), std::string::npos) << checks[0].fix;
  }
}

TEST(CounterProof, OlderLibraryWarns) {
  const auto checks = copy_checks({"/opt/libcupti.so", 120800, 130001}, copied(0, 0));
  EXPECT_EQ(checks[0].id, "cupti");
  EXPECT_EQ(checks[0].status, warn);
  EXPECT_NE(checks[0].detail.find("120800, built with 130001"), std::string::npos);
}

TEST(CounterProof, ProductBetweenTheFormulaAndItsPadding) {
  const auto status = [](OptDouble ops) {
    Counters counters;
    counters.status = "ok";
    counters.tensor_ops = ops;
    return gemm_check(counters, 1e12, "8192^3 bf16").status;
  };
  EXPECT_EQ(status(1.0156e12), ok);
  EXPECT_EQ(status(0.5e12), fail);
  EXPECT_EQ(status(1.2e12), fail);
  EXPECT_EQ(status(std::nullopt), ok) << "a chip that has no such counter";
  Counters zeros;
  zeros.status = "invalid";
  zeros.reason = "counted no tensor operations";
  EXPECT_EQ(gemm_check(zeros, 1e12, "x").status, fail);
}

TEST(CheckStatusText, IsStrict) {
  EXPECT_EQ(check_status("warn"), warn);
  EXPECT_THROW(check_status("OK"), UsageError);
}

}  // namespace
}  // namespace rooflash
