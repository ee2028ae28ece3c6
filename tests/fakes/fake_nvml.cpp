// An NVML that does what FAKE_NVML says (script.hpp), with one device and no GPU. With an empty
// script it is a quiet NVIDIA H200.
//
//   bus=0000:1a:00.0    where the device is       name=NVIDIA H200     what it is called
//   clock=1980 memory_clock=3201 max_clock=1980   MHz
//   power=76000 power_limit=700000 power_limit_default=700000         mW
//   temperature=35      reasons=1                 bits, as NVML has them
//   energy_step=30000   mJ that the counter moves by between two questions; energy=0 its start
//   ecc=1 mig=0 persistence=1 processes=0         driver=580.95.05
//
// FAKE_NVML_OLD lacks what came with driver 535.
#include <cstdio>
#include <cstring>
#include <string>

#include "fakes/script.hpp"

namespace {

fake::Script script("FAKE_NVML");

unsigned value(const char* key, unsigned otherwise) {
  return static_cast<unsigned>(script.number(key, otherwise));
}

int give(const char* function, const char* key, unsigned otherwise, unsigned* target) {
  const int code = script.call(function);
  if (code == 0) *target = value(key, otherwise);
  return code;
}

int give_text(const char* function, const char* key, const char* otherwise, char* text,
              unsigned size) {
  const int code = script.call(function);
  if (code != 0) return code;
  const std::string given = script.value(key).value_or(otherwise);
  return std::snprintf(text, size, "%s", given.c_str()) < static_cast<int>(size) ? 0 : 7;
}

constexpr unsigned kClockMemory = 2;

}  // namespace

extern "C" {

using Device = void*;

void fake_reset() {
  script.reset();
}
int fake_calls(const char* function) {
  return script.calls(function);
}

const char* nvmlErrorString(int code) {
  return code == 3 ? "Not Supported" : "Fake";
}
int nvmlInit_v2() {
  return script.call(__func__);
}
int nvmlShutdown() {
  return script.call(__func__);
}
int nvmlSystemGetDriverVersion(char* text, unsigned size) {
  return give_text(__func__, "driver", "580.95.05", text, size);
}
int nvmlDeviceGetHandleByPciBusId_v2(const char* bus_id, Device* device) {
  const int code = script.call(__func__);
  if (code != 0) return code;
  *device = &script;
  return script.value("bus").value_or("0000:1a:00.0") == bus_id ? 0 : 6;
}
int nvmlDeviceGetName(Device, char* text, unsigned size) {
  return give_text(__func__, "name", "NVIDIA H200", text, size);
}
int nvmlDeviceGetClockInfo(Device, unsigned type, unsigned* mhz) {
  return type == kClockMemory ? give(__func__, "memory_clock", 3201, mhz)
                              : give(__func__, "clock", 1980, mhz);
}
int nvmlDeviceGetMaxClockInfo(Device, unsigned type, unsigned* mhz) {
  return type == kClockMemory ? give(__func__, "memory_clock", 3201, mhz)
                              : give(__func__, "max_clock", 1980, mhz);
}
int nvmlDeviceGetPowerUsage(Device, unsigned* mw) {
  return give(__func__, "power", 76000, mw);
}
int nvmlDeviceGetEnforcedPowerLimit(Device, unsigned* mw) {
  return give(__func__, "power_limit", 700000, mw);
}
int nvmlDeviceGetPowerManagementDefaultLimit(Device, unsigned* mw) {
  return give(__func__, "power_limit_default", 700000, mw);
}
int nvmlDeviceGetTotalEnergyConsumption(Device, unsigned long long* mj) {
  const int code = script.call(__func__);
  const double step = script.number("energy_step", 30000);
  const double moved = step * script.calls(__func__);
  *mj = static_cast<unsigned long long>(script.number("energy", 1e9) + moved);
  return code;
}
int nvmlDeviceGetTemperature(Device, unsigned, unsigned* celsius) {
  return give(__func__, "temperature", 35, celsius);
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetCurrentClocksEventReasons(Device, unsigned long long* bits) {
  const int code = script.call(__func__);
  *bits = value("reasons", 1);
  return code;
}
#endif
int nvmlDeviceGetCurrentClocksThrottleReasons(Device, unsigned long long* bits) {
  const int code = script.call(__func__);
  *bits = value("reasons", 1);
  return code;
}
int nvmlDeviceGetPersistenceMode(Device, unsigned* on) {
  return give(__func__, "persistence", 1, on);
}
int nvmlDeviceGetEccMode(Device, unsigned* on, unsigned* pending) {
  *pending = value("ecc", 1);
  return give(__func__, "ecc", 1, on);
}
int nvmlDeviceGetMigMode(Device, unsigned* on, unsigned* pending) {
  *pending = value("mig", 0);
  return give(__func__, "mig", 0, on);
}
#ifndef FAKE_NVML_OLD
int nvmlDeviceGetComputeRunningProcesses_v3(Device, unsigned* count, void*) {
  const int code = script.call(__func__);
  if (code != 0) return code;
  const unsigned room = *count;
  *count = value("processes", 0);
  return *count > room ? 7 : 0;
}
#endif

}  // extern "C"
