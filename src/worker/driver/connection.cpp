#include "worker/driver/connection.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/units.hpp"
#include "record/json.hpp"
#include "worker/driver/interrupt.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

const Json& member(const Json& json, const char* key, const std::string& place) {
  if (!json.is_object() || !json.contains(key)) {
    throw UsageError(fmt::format("{}: \"{}\" is missing", place, key));
  }
  return json[key];
}

std::string text_of(const Json& json, const char* key, const std::string& place) {
  const Json& value = member(json, key, place);
  if (!value.is_string()) throw UsageError(fmt::format("{}: \"{}\" is not a string", place, key));
  return value.get<std::string>();
}

std::int64_t integer_of(const Json& json, const char* key, const std::string& place) {
  const Json& value = member(json, key, place);
  if (!value.is_number_integer()) {
    throw UsageError(fmt::format("{}: \"{}\" is not an integer", place, key));
  }
  return value.get<std::int64_t>();
}

Error error_of(const Json& json, const std::string& place) {
  const std::int64_t code = integer_of(json, "code", place);
  const bool known =
      code == static_cast<int>(ExitCode::usage) || code == static_cast<int>(ExitCode::no_gpu);
  return Error(known ? static_cast<ExitCode>(code) : ExitCode::incomplete,
               printable(text_of(json, "what", place), 500),
               printable(text_of(json, "hint", place), 500));
}

std::vector<DoctorCheck> checks_of(const Json& json, const std::string& place) {
  std::vector<DoctorCheck> checks;
  for (const Json& check : member(json, "checks", place)) {
    checks.push_back({text_of(check, "id", place), check_status(text_of(check, "status", place)),
                      text_of(check, "detail", place), text_of(check, "fix", place)});
  }
  return checks;
}

}  // namespace

Reply parse_reply(const std::string& line, const std::string& device) {
  const std::string place = fmt::format("reply of the {} worker", device);
  const Json json = parse_json(line, place);
  Reply reply;
  reply.type = text_of(json, "type", place);
  if (reply.type == "hello") {
    if (integer_of(json, "protocol", place) != kProtocolVersion) {
      throw UsageError(fmt::format("{}: the worker speaks another protocol version", place),
                       "Build rooflash and rooflash-worker from the same sources.");
    }
    reply.hello =
        Hello{device_from_json(member(json, "device", place), place + ": device"),
              environment_from_json(member(json, "environment", place), place + ": environment")};
  } else if (reply.type == "phase") {
    reply.index = integer_of(json, "index", place);
    reply.phase = printable(text_of(json, "phase", place), 40);
  } else if (reply.type == "row") {
    reply.index = integer_of(json, "index", place);
    reply.row = row_from_json(member(json, "row", place), place + ": row");
  } else if (reply.type == "ceilings") {
    reply.ceilings = ceilings_from_json(member(json, "ceilings", place), place + ": ceilings");
  } else if (reply.type == "doctor" || reply.type == "proof") {
    reply.checks = checks_of(json, place);
  } else if (reply.type == "metrics") {
    reply.metrics = metric_answer_from_json(member(json, "metrics", place), place + ": metrics");
  } else if (reply.type == "profile") {
    reply.profile = counted_profile_from_json(member(json, "profile", place), place + ": profile");
  } else if (reply.type == "error") {
    reply.error = error_of(json, place);
  } else {
    throw UsageError(fmt::format("{}: unknown type {}", place, printable(reply.type, 40)));
  }
  return reply;
}

Deadline deadline_in(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
}

Connection::Connection(std::string worker, std::string device)
    : worker_(std::move(worker)), device_(std::move(device)) {}

void Connection::launch() {
  process_.reset();
  process_ = std::make_unique<WorkerProcess>(worker_, std::vector<std::string>{});
  process_->send(dump_line(Json{{"type", "start"}, {"device", device_}}));
}

void Connection::end(double timeout_s) {
  if (!process_) return;
  process_->close_stdin();
  process_->finish(deadline_in(timeout_s));
  process_.reset();
}

Reply Connection::wait_for(const std::string& type, double timeout_s) {
  const Deadline deadline = deadline_in(timeout_s);
  while (const auto line = process_->wait_line(deadline)) {
    Reply reply = [&] {
      try {
        return parse_reply(*line, device_);
      } catch (const UsageError& error) {  // of the worker, not of the user
        throw Error(ExitCode::incomplete, error.what(),
                    error.hint().empty()
                        ? "Build rooflash and rooflash-worker from the same sources."
                        : error.hint());
      }
    }();
    if (reply.error) throw Error(*reply.error);
    if (reply.type == type) return reply;
  }
  if (stop_signal() != 0) throw Error(ExitCode::interrupted, "interrupted");
  if (process_->out_fd() >= 0) {
    process_.reset();
    throw Error(ExitCode::incomplete,
                fmt::format("the {} worker gave no {} in {:.6g} s", device_, type, timeout_s),
                "Check the device with `rooflash doctor`.");
  }
  const std::string end = WorkerProcess::describe(process_->finish(deadline_in(2)));
  throw Error(ExitCode::incomplete,
              fmt::format("the {} worker ended before its {}{}{}", device_, type,
                          end.empty() ? "" : " (" + end + ")",
                          [&] {
                            const std::string tail = process_->stderr_tail();
                            return tail.empty() ? tail : ": " + tail;
                          }()),
              "Check the device with `rooflash doctor`.");
}

Hello Connection::start() {
  launch();
  return *wait_for("hello", kStartTimeoutSeconds).hello;
}

Reply Connection::ask(const Json& request, double timeout_s) {
  if (!process_ || process_->out_fd() < 0) start();
  process_->send(dump_line(request));
  return wait_for(request["type"], timeout_s);
}

Ceilings Connection::ceilings(double timeout_s, bool sustained) {
  return *ask({{"type", "ceilings"}, {"sustained", sustained}}, timeout_s).ceilings;
}

std::vector<DoctorCheck> Connection::doctor(double timeout_s) {
  return ask({{"type", "doctor"}}, timeout_s).checks;
}

std::vector<DoctorCheck> Connection::prove_counters(const std::string& counters, double timeout_s) {
  return ask({{"type", "proof"}, {"counters", counters}}, timeout_s).checks;
}

MetricAnswer Connection::metrics(const std::vector<std::string>& names, double timeout_s) {
  return *ask({{"type", "metrics"}, {"names", names}}, timeout_s).metrics;
}

CountedProfile Connection::profile(const ProfileRequest& request, double timeout_s) {
  Reply reply = ask({{"type", "profile"}, {"request", to_json(request)}}, timeout_s);
  if (reply.profile->groups.size() != request.groups.size() &&
      reply.profile->row.status == Status::ok) {
    throw Error(ExitCode::incomplete,
                fmt::format("the {} worker counted {} groups of {}", device_,
                            reply.profile->groups.size(), request.groups.size()));
  }
  return std::move(*reply.profile);
}

std::vector<DeviceInfo> list_cuda_devices(const std::string& worker) {
  WorkerProcess process(worker, {"--devices"});
  process.close_stdin();
  const auto line = process.wait_line(deadline_in(kStartTimeoutSeconds));
  if (stop_signal() != 0) throw Error(ExitCode::interrupted, "interrupted");
  const std::string place = "rooflash-worker --devices";
  if (!line) {
    const std::string end = WorkerProcess::describe(process.finish(deadline_in(1)));
    const std::string tail = process.stderr_tail();
    throw Error(ExitCode::incomplete,
                fmt::format("{} gave no answer{}{}", place, end.empty() ? "" : " (" + end + ")",
                            tail.empty() ? "" : ": " + tail),
                tail.find("libcublas") != std::string::npos
                    ? "Install the cuBLAS of the toolkit built with (libcublas), or add its folder "
                      "to LD_LIBRARY_PATH."
                    : "Run it by hand to see why.");
  }
  const Json json = parse_json(*line, place);
  if (json.is_object()) throw Error(error_of(json, place));
  std::vector<DeviceInfo> devices;
  for (const Json& device : json) devices.push_back(device_from_json(device, place));
  if (devices.empty()) throw Error(ExitCode::no_gpu, "no CUDA device is visible");
  return devices;
}

}  // namespace rooflash
