// Every way in which NVML fails, on a fake one: what cannot be told is empty and says why.
#include "gpu/nvml.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <initializer_list>
#include <string>

namespace rooflash {
namespace {

using std::chrono::milliseconds;

const std::string kFakes = ROOFLASH_FAKES;
constexpr const char* kBus = "0000:1a:00.0";
constexpr const char* kName = "NVIDIA H200";

class NvmlFaults : public testing::Test {
 protected:
  void SetUp() override { use("nvml", ""); }
  void TearDown() override {
    ASSERT_EQ(unsetenv("FAKE_NVML"), 0);
    ASSERT_EQ(unsetenv("ROOFLASH_NVML"), 0);
  }
  // The fake in `folder`, with a script (fakes/script.hpp).
  void use(const std::string& folder, const std::string& script) {
    const std::string path = kFakes + "/" + folder + "/libnvidia-ml.so.1";
    ASSERT_EQ(setenv("ROOFLASH_NVML", path.c_str(), 1), 0);
    ASSERT_EQ(setenv("FAKE_NVML", script.c_str(), 1), 0);
    library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    ASSERT_NE(library_, nullptr) << dlerror();
    reinterpret_cast<void (*)()>(dlsym(library_, "fake_reset"))();
  }
  int calls(const char* function) const {
    return reinterpret_cast<int (*)(const char*)>(dlsym(library_, "fake_calls"))(function);
  }

  static void expect_reason(const std::map<std::string, std::string>& missing, const char* field,
                            std::initializer_list<const char*> words) {
    const auto found = missing.find(field);
    ASSERT_NE(found, missing.end()) << field << " has no reason";
    for (const char* word : words) {
      EXPECT_NE(found->second.find(word), std::string::npos)
          << "no '" << word << "' in: " << found->second;
    }
  }
  // Nothing is known, all for one reason.
  static void expect_nothing(const Nvml& nvml, std::initializer_list<const char*> words) {
    const NvmlSnapshot now = nvml.snapshot();
    EXPECT_FALSE(now.sm_clock_mhz || now.memory_clock_mhz || now.power_w || now.temperature_c ||
                 now.throttle || now.clocks_set);
    for (const char* field :
         {"sm_clock_mhz", "memory_clock_mhz", "power_w", "temperature_c", "throttle"}) {
      expect_reason(now.missing, field, words);
    }
    const NvmlFacts facts = nvml.facts();
    EXPECT_FALSE(facts.sm_clock_max_mhz || facts.memory_clock_max_mhz || facts.power_limit_w ||
                 facts.power_limit_default_w || facts.persistence || facts.ecc || facts.mig ||
                 facts.compute_processes);
    for (const char* field :
         {"sm_clock_max_mhz", "memory_clock_max_mhz", "power_limit_w", "power_limit_default_w",
          "persistence", "ecc", "mig", "other_processes"}) {
      expect_reason(facts.missing, field, words);
    }
  }

 private:
  void* library_ = nullptr;
};

TEST_F(NvmlFaults, NoneGivesFigures) {
  {
    const Nvml nvml(kBus, kName);
    const NvmlSnapshot now = nvml.snapshot();
    EXPECT_EQ(now.missing.size(), 0U);
    EXPECT_EQ(now.sm_clock_mhz, 1980);
    EXPECT_EQ(now.memory_clock_mhz, 3201);
    EXPECT_EQ(now.power_w, 76);
    EXPECT_EQ(now.temperature_c, 35);
    EXPECT_EQ(now.throttle, std::vector<std::string>()) << "idle is no throttling";
    EXPECT_EQ(now.clocks_set, false);
    const NvmlFacts facts = nvml.facts();
    EXPECT_EQ(facts.missing.size(), 0U);
    EXPECT_EQ(facts.power_limit_w, 700);
    EXPECT_EQ(facts.ecc, true);
    EXPECT_EQ(facts.mig, false);
    EXPECT_EQ(facts.persistence, true);
    EXPECT_EQ(facts.compute_processes, 0);
    EXPECT_EQ(nvml.driver_version(), "580.95.05");
  }
  EXPECT_EQ(calls("nvmlShutdown"), 1);
}

TEST_F(NvmlFaults, ThrottleReasonsAreNamed) {
  use("nvml", "reasons=238");  // all but idle, sync boost and displays
  const NvmlSnapshot now = Nvml(kBus, kName).snapshot();
  EXPECT_EQ(now.throttle, (std::vector<std::string>{"sw_power_cap", "hw_slowdown", "sw_thermal",
                                                    "hw_thermal", "hw_power_brake"}));
  EXPECT_EQ(now.clocks_set, true);
}

TEST_F(NvmlFaults, MissingLibrary) {
  ASSERT_EQ(setenv("ROOFLASH_NVML", "/nonexistent/libnvidia-ml.so.1", 1), 0);
  expect_nothing(Nvml(kBus, kName),
                 {"no NVML library", "/nonexistent/", "NVIDIA_DRIVER_CAPABILITIES"});
  ASSERT_EQ(setenv("ROOFLASH_NVML", "0", 1), 0);
  expect_nothing(Nvml(kBus, kName), {"ROOFLASH_NVML=0"});
}

TEST_F(NvmlFaults, OlderDriverHasTheOlderQuery) {
  use("nvml_old", "reasons=4");
  const NvmlSnapshot now = Nvml(kBus, kName).snapshot();
  EXPECT_EQ(now.throttle, std::vector<std::string>{"sw_power_cap"});
  EXPECT_EQ(calls("nvmlDeviceGetCurrentClocksThrottleReasons"), 1);
  const NvmlFacts facts = Nvml(kBus, kName).facts();
  expect_reason(facts.missing, "other_processes", {"no such query"});
  EXPECT_EQ(facts.power_limit_w, 700) << "the rest is known";
}

TEST_F(NvmlFaults, CannotStart) {
  use("nvml", "nvmlInit_v2=9");
  expect_nothing(Nvml(kBus, kName), {"could not start", "9", "kernel module"});
  EXPECT_EQ(calls("nvmlShutdown"), 0);
  use("nvml", "nvmlInit_v2=18");
  expect_nothing(Nvml(kBus, kName), {"18", "driver was updated", "reboot"});
  use("nvml", "nvmlInit_v2=4");
  expect_nothing(Nvml(kBus, kName), {"4", "administrator"});
}

// A slice of a card has few figures; each that is missing says so, and the others are there.
TEST_F(NvmlFaults, NotSupportedCallByCall) {
  struct Case {
    const char* function;
    const char* field;
  };
  for (const Case& one : {Case{"nvmlDeviceGetPowerUsage", "power_w"},
                          Case{"nvmlDeviceGetTemperature", "temperature_c"},
                          Case{"nvmlDeviceGetClockInfo", "sm_clock_mhz"},
                          Case{"nvmlDeviceGetCurrentClocksEventReasons", "throttle"}}) {
    SCOPED_TRACE(one.function);
    use("nvml", std::string(one.function) + "@1=3");
    const NvmlSnapshot now = Nvml(kBus, kName).snapshot();
    EXPECT_EQ(now.missing.size(), 1U);
    expect_reason(now.missing, one.field, {"3", "Not Supported", "MIG"});
  }
  for (const Case& one : {Case{"nvmlDeviceGetMaxClockInfo", "sm_clock_max_mhz"},
                          Case{"nvmlDeviceGetEnforcedPowerLimit", "power_limit_w"},
                          Case{"nvmlDeviceGetPowerManagementDefaultLimit", "power_limit_default_w"},
                          Case{"nvmlDeviceGetPersistenceMode", "persistence"},
                          Case{"nvmlDeviceGetEccMode", "ecc"}, Case{"nvmlDeviceGetMigMode", "mig"},
                          Case{"nvmlDeviceGetComputeRunningProcesses_v3", "other_processes"}}) {
    SCOPED_TRACE(one.function);
    use("nvml", std::string(one.function) + "@1=4");
    const NvmlFacts facts = Nvml(kBus, kName).facts();
    EXPECT_EQ(facts.missing.size(), 1U);
    expect_reason(facts.missing, one.field, {"4", "administrator"});
  }
}

// CUDA's device 0 may be NVML's device 3: it is found by its place on the bus, and its name
// checked.
TEST_F(NvmlFaults, AnotherDevice) {
  use("nvml", "bus=0000:2b:00.0");
  expect_nothing(Nvml(kBus, kName), {"finds no device at 0000:1a:00.0", "6"});
  EXPECT_EQ(Nvml("0000:2b:00.0", kName).snapshot().missing.size(), 0U);
  use("nvml", "name=NVIDIA A100");
  expect_nothing(Nvml(kBus, kName), {kBus, "'NVIDIA A100'", "'NVIDIA H200'", "different machines"});
  use("nvml", "nvmlDeviceGetName=15");
  expect_nothing(Nvml(kBus, kName), {"does not name", "15", "fell off the bus"});
}

TEST_F(NvmlFaults, MigSliceHasTheCardsName) {
  use("nvml", "mig=1");
  const NvmlFacts facts = Nvml(kBus, "NVIDIA H200 MIG 1g.18gb").facts();
  EXPECT_EQ(facts.mig, true);
}

TEST_F(NvmlFaults, AbsurdValuesAreNoFigures) {
  use("nvml", "power=4294967295;temperature=0;clock=0;memory_clock=400000");
  const NvmlSnapshot now = Nvml(kBus, kName).snapshot();
  expect_reason(now.missing, "power_w", {"4.29497e+06", "no card"});
  expect_reason(now.missing, "temperature_c", {"gave 0"});
  expect_reason(now.missing, "sm_clock_mhz", {"gave 0"});
  expect_reason(now.missing, "memory_clock_mhz", {"400000"});
  EXPECT_FALSE(now.power_w || now.temperature_c || now.sm_clock_mhz || now.memory_clock_mhz);
  use("nvml", "power_limit=0;processes=4294967295");
  const NvmlFacts facts = Nvml(kBus, kName).facts();
  expect_reason(facts.missing, "power_limit_w", {"gave 0"});
  expect_reason(facts.missing, "other_processes", {"7"});
}

TEST_F(NvmlFaults, EnergyOfAWindowIsItsMeanPower) {
  const NvmlPower power = Nvml(kBus, kName).mean_power();
  ASSERT_TRUE(power.watts) << power.missing;
  EXPECT_GE(power.window_s, 1.2);
  EXPECT_NEAR(*power.watts * power.window_s, 60, 1e-6);  // two steps of 30 J, as it was asked
}

TEST_F(NvmlFaults, EnergyThatCannotBeToldHasAReason) {
  const auto expect = [&](const char* script, const char* word) {
    use("nvml", script);
    const NvmlPower power = Nvml(kBus, kName).mean_power();
    EXPECT_FALSE(power.watts) << script;
    EXPECT_NE(power.missing.find(word), std::string::npos) << power.missing;
  };
  expect("nvmlDeviceGetTotalEnergyConsumption=3", "Not Supported");
  expect("nvmlDeviceGetTotalEnergyConsumption@4=15", "fell off the bus");
  expect("energy_step=0", "stood still");
  expect("energy_step=-30000", "went from");
  expect("energy_step=1e9", "went from");  // a megawatt
}

TEST_F(NvmlFaults, LostDuringTheRun) {
  const Nvml nvml(kBus, kName);
  EXPECT_TRUE(nvml.snapshot().power_w);
  use("nvml", "nvmlDeviceGetPowerUsage=15");
  expect_reason(nvml.snapshot().missing, "power_w", {"15", "fell off the bus", "Xid"});
}

// A driver that hangs costs its figures and a moment, once.
TEST_F(NvmlFaults, HangIsBounded) {
  const auto start = std::chrono::steady_clock::now();
  use("nvml", "nvmlInit_v2=hang");
  expect_nothing(Nvml(kBus, kName, milliseconds(50)), {"did not answer within 50 ms", "dmesg"});
  use("nvml", "nvmlDeviceGetTemperature=hang");
  const Nvml nvml(kBus, kName, milliseconds(50));
  EXPECT_EQ(nvml.facts().power_limit_w, 700);
  EXPECT_FALSE(nvml.snapshot().power_w);
  expect_nothing(nvml, {"did not answer within 50 ms"});
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace rooflash
