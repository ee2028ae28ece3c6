// A device and the worker process that serves it.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/record.hpp"
#include "worker/backend.hpp"
#include "worker/driver/process.hpp"

namespace rooflash {

// What a worker says first: its device, and driver, cuda, cudnn and visible_devices.
struct Hello {
  DeviceInfo device;
  Environment environment;
};

// A reply of the worker. Only the fields of its type are set.
struct Reply {
  // hello | phase | row | ceilings | doctor | proof | metrics | profile | error
  std::string type;
  std::int64_t index = -1;
  std::string phase;
  std::optional<Hello> hello;
  std::optional<Row> row;
  std::optional<Ceilings> ceilings;
  std::vector<DoctorCheck> checks;
  std::optional<MetricAnswer> metrics;
  std::optional<CountedProfile> profile;
  std::optional<Error> error;  // fatal: the worker exits after it
};

// Throws UsageError that names `device` and the field where the line is not of the protocol.
Reply parse_reply(const std::string& line, const std::string& device);

// How long a worker may take to say hello (a CUDA context takes seconds on a large machine).
inline constexpr double kStartTimeoutSeconds = 60;

Deadline deadline_in(double seconds);

class Connection {
 public:
  Connection(std::string worker, std::string device);

  const std::string& device() const { return device_; }
  WorkerProcess* process() { return process_.get(); }

  // Starts a fresh worker (ending an old one) and asks it for the device; the hello comes later.
  void launch();
  void drop() { process_.reset(); }
  // Lets an idle worker end by itself, so that a profiler around it can write what it has; kills it
  // `timeout_s` later.
  void end(double timeout_s);

  // Waits for one reply of `type`. Throws the worker's own error, or Error(incomplete) where it
  // died or is late, or Error(interrupted).
  Reply wait_for(const std::string& type, double timeout_s);
  Hello start();  // launch() and the hello
  // Launches a worker where none is. `sustained` asks for the roofs under lasting load too.
  Ceilings ceilings(double timeout_s, bool sustained = false);
  std::vector<DoctorCheck> doctor(double timeout_s);
  std::vector<DoctorCheck> prove_counters(const std::string& counters, double timeout_s);
  MetricAnswer metrics(const std::vector<std::string>& names, double timeout_s);
  CountedProfile profile(const ProfileRequest& request, double timeout_s);

 private:
  Reply ask(const nlohmann::ordered_json& request, double timeout_s);

  std::string worker_;
  std::string device_;
  std::unique_ptr<WorkerProcess> process_;
};

// The CUDA devices that a worker sees. Throws Error(no_gpu) where there is none, or no driver, or
// the worker was built without CUDA.
std::vector<DeviceInfo> list_cuda_devices(const std::string& worker);

}  // namespace rooflash
