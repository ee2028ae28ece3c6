#include "worker/loop/loop.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "core/units.hpp"
#include "record/json.hpp"
#include "worker/loop/line_reader.hpp"
#include "worker/loop/trace_log.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

void write_line(int fd, std::string line) {
  line += '\n';
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t count = write(fd, rest.data(), rest.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) _exit(1);  // the driver is gone
    rest.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string text_member(const Json& json, const char* key) {
  if (!json.is_object() || !json.contains(key) || !json[key].is_string()) {
    throw UsageError(std::string("a request without a text \"") + key + "\"",
                     "send requests as documented in worker/protocol.hpp");
  }
  return json[key].get<std::string>();
}

std::vector<std::string> names_member(const Json& json) {
  if (!json.contains("names") || !json["names"].is_array()) {
    throw UsageError("a request for metrics without \"names\"");
  }
  std::vector<std::string> names;
  for (const Json& name : json["names"]) {
    if (!name.is_string()) throw UsageError("a name of a metric that is not a string");
    names.push_back(name.get<std::string>());
  }
  return names;
}

class Session {
 public:
  Session(int in_fd, int out_fd) : reader_(in_fd), out_fd_(out_fd) {}

  // Returns once the device is lost; throws what is fatal.
  void run(const BackendFactory& make_backend) {
    const Json start = parse_json(reader_.next(), "request");
    if (text_member(start, "type") != "start") throw UsageError("the first request is not start");
    backend_ = make_backend(text_member(start, "device"));
    reply({{"type", "hello"},
           {"protocol", kProtocolVersion},
           {"device", to_json(backend_->device())},
           {"environment", to_json(backend_->environment())}});
    while (!backend_->lost()) serve_request(parse_json(reader_.next(), "request"));
  }

 private:
  void reply(const Json& json) const { write_line(out_fd_, dump_line(json)); }

  void serve_request(const Json& json) {
    const std::string type = text_member(json, "type");
    if (type == "run") {
      run_case(json);
    } else if (type == "ceilings") {
      const bool sustained = json.value("sustained", false);
      reply({{"type", type}, {"ceilings", to_json(backend_->ceilings(sustained))}});
    } else if (type == "doctor") {
      reply_checks(type, backend_->doctor());
    } else if (type == "proof") {
      reply_checks(type, backend_->prove_counters(text_member(json, "counters")));
    } else if (type == "metrics") {
      reply({{"type", type}, {"metrics", to_json(backend_->metrics(names_member(json)))}});
    } else if (type == "profile") {
      profile_case(json);
    } else {
      throw UsageError("unknown request type " + printable(type, 40),
                       "build rooflash and rooflash-worker from the same sources");
    }
  }

  void reply_checks(const std::string& type, const std::vector<DoctorCheck>& found) const {
    Json checks = Json::array();
    for (const DoctorCheck& check : found) {
      checks.push_back({{"id", check.id},
                        {"status", to_string(check.status)},
                        {"detail", check.detail},
                        {"fix", check.fix}});
    }
    reply({{"type", type}, {"checks", std::move(checks)}});
  }

  void run_case(const Json& json) {
    if (!json.contains("request")) throw UsageError("a run without a \"request\"");
    const CaseRequest request = case_request_from_json(json["request"]);
    TraceLog trace;
    Row row = backend_->run(request, [&](std::string_view phase) {
      trace.begin(phase);
      reply({{"type", "phase"}, {"index", request.index}, {"phase", std::string(phase)}});
    });
    trace.finish(row);
    reply({{"type", "row"}, {"index", request.index}, {"row", to_json(row)}});
  }

  void profile_case(const Json& json) {
    if (!json.contains("request")) throw UsageError("a profile without a \"request\"");
    const ProfileRequest request = profile_request_from_json(json["request"]);
    const std::int64_t index = request.request.index;
    const CountedProfile profile = backend_->profile(request, [&](std::string_view phase) {
      reply({{"type", "phase"}, {"index", index}, {"phase", std::string(phase)}});
    });
    reply({{"type", "profile"}, {"profile", to_json(profile)}});
  }

  LineReader reader_;
  int out_fd_;
  std::unique_ptr<Backend> backend_;
};

}  // namespace

int take_stdout() {
  std::fflush(stdout);
  const int saved = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (saved < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0) {
    throw Error(ExitCode::incomplete, std::string("cannot redirect stdout: ") + strerror(errno));
  }
  return saved;
}

std::string error_line(const Error& error) {
  return dump_line(Json{{"type", "error"},
                        {"code", static_cast<int>(error.code())},
                        {"what", error.what()},
                        {"hint", error.hint()}});
}

int serve(int in_fd, int out_fd, const BackendFactory& make_backend) {
  std::signal(SIGPIPE, SIG_IGN);
  Session session(in_fd, out_fd);
  try {
    session.run(make_backend);
    return static_cast<int>(ExitCode::incomplete);
  } catch (const Error& error) {
    write_line(out_fd, error_line(error));
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    write_line(out_fd, error_line(Error(ExitCode::incomplete, error.what())));
    return static_cast<int>(ExitCode::incomplete);
  }
}

}  // namespace rooflash
