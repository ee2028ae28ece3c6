#include "worker/driver/pool.hpp"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <deque>
#include <optional>

#include "core/units.hpp"
#include "record/json.hpp"
#include "worker/driver/interrupt.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMaxStartFailures = 3;  // then the device's other cases are given up

// One device's queue and the state of its worker.
class Lane {
 public:
  Lane(Connection& connection, double timeout_s, const std::function<void(const Row&)>& on_row)
      : connection_(connection), timeout_s_(timeout_s), on_row_(on_row) {}

  void add(const Job& job) { queue_.push_back(&job); }
  bool done() const { return queue_.empty(); }
  Deadline deadline() const { return deadline_; }
  WorkerProcess& process() { return *connection_.process(); }

  // Hands the first case of the queue to the worker, starting one where needed.
  void next() {
    while (!done() && start_failures_ >= kMaxStartFailures) {
      finish(Status::not_run, "given up: the worker of this device no longer starts");
    }
    if (done()) {
      connection_.drop();
      return;
    }
    const Job& job = *queue_.front();
    phase_.clear();
    const bool fresh_round = round_ && *round_ != job.request.round;
    round_ = job.request.round;
    if (connection_.process() == nullptr || fresh_round || process().out_fd() < 0) {
      connection_.launch();
      state_ = State::starting;
      deadline_ = deadline_in(kStartTimeoutSeconds);
    } else {
      send();
    }
  }

  // Takes what the worker wrote; notices its end and its time limit.
  void update() {
    process().pump();
    while (state_ != State::idle) {
      const auto line = process().next_line();
      if (!line) break;
      handle(*line);
    }
    if (state_ == State::idle) {
      next();
    } else if (process().out_fd() < 0) {
      on_end();
    } else if (std::chrono::steady_clock::now() >= deadline_) {
      on_deadline();
    }
  }

 private:
  enum class State { starting, running, idle };

  void send() {
    CaseRequest request = queue_.front()->request;
    if (!counters_off_.empty()) request.options.counters = "none";
    // A worker that is gone shows as the end of its output.
    process().send(dump_line(Json{{"type", "run"}, {"request", to_json(request)}}));
    state_ = State::running;
    deadline_ = deadline_in(timeout_s_);
  }

  void handle(const std::string& line) {
    Reply reply;
    try {
      reply = parse_reply(line, connection_.device());
    } catch (const UsageError& error) {
      end_worker(Status::failed, error.what());
      return;
    }
    if (reply.error) fatal_ = reply.error->what();
    if (reply.hello && state_ == State::starting) {
      start_failures_ = 0;
      send();
    }
    if (state_ != State::running || reply.index != queue_.front()->request.index) return;
    if (!reply.phase.empty()) phase_ = reply.phase;
    if (reply.row) finish(std::move(*reply.row));
  }

  void on_end() {
    const int status = process().finish(deadline_in(2));
    const std::string end = WorkerProcess::describe(status);
    const bool by_signal = end.starts_with("SIG") || end.starts_with("signal");
    std::string why = fatal_;
    if (why.empty()) why = end.empty() ? "the worker ended without a result" : end;
    if (!phase_.empty()) why += fmt::format(" in phase {}", phase_);
    const std::string tail = process().stderr_tail();
    if (!tail.empty() && fatal_.empty()) why += ": " + tail;
    end_worker(by_signal ? Status::crashed : Status::failed, why);
  }

  void on_deadline() {
    if (state_ == State::starting) {
      end_worker(Status::failed, fmt::format("no worker after {} s", kStartTimeoutSeconds));
      return;
    }
    end_worker(Status::timeout, fmt::format("no result after {:.6g} s{}", timeout_s_,
                                            phase_.empty() ? "" : ", in phase " + phase_));
  }

  // Ends the worker; the case in flight gets `status`. A case that had not begun (the worker ended
  // after its last row) is given to a fresh worker, once. So is one that was being counted:
  // counting must not cost the time it had, and this device goes on without.
  void end_worker(Status status, const std::string& reason) {
    connection_.drop();
    fatal_.clear();
    if (state_ == State::running && phase_ == "counters" && counters_off_.empty()) {
      counters_off_ = fmt::format(
          "switched off, because reading the counters of {} took the worker down ({}): see "
          "`rooflash doctor`, or spare the attempt with --counters none",
          queue_.front()->blank.case_id, reason);
      state_ = State::idle;
      next();
      return;
    }
    const bool begun = !phase_.empty() || status == Status::timeout;
    if (state_ == State::starting) {
      ++start_failures_;
      finish(Status::failed, "the worker did not start: " + reason);
    } else if (begun || retried_ == queue_.front()) {
      finish(status, reason);
    } else {
      retried_ = queue_.front();
      state_ = State::idle;
    }
    if (state_ == State::idle) next();
  }

  void finish(Status status, const std::string& reason) {
    Row row = queue_.front()->blank;
    row.status = status;
    row.reason = reason;
    finish(std::move(row));
  }

  void finish(Row row) {
    if (row.status == Status::ok && !counters_off_.empty() &&
        queue_.front()->request.options.counters != "none") {
      row.counters = {};
      row.counters.status = "unavailable";
      row.counters.reason = counters_off_;
    }
    on_row_(row);
    queue_.pop_front();
    state_ = State::idle;
  }

  Connection& connection_;
  double timeout_s_;
  const std::function<void(const Row&)>& on_row_;
  std::deque<const Job*> queue_;
  const Job* retried_ = nullptr;
  State state_ = State::idle;
  Deadline deadline_;
  std::optional<int> round_;
  std::string phase_;
  std::string fatal_;         // what the worker said before it ended
  std::string counters_off_;  // why this device is counted no more; "" while it is
  int start_failures_ = 0;
};

// Waits until a worker of `lanes` writes, a time limit passes, or a signal asks to stop.
void wait_for_any(std::deque<Lane>& lanes) {
  std::vector<pollfd> fds{{stop_fd(), POLLIN, 0}};
  Deadline first = deadline_in(60);
  for (Lane& lane : lanes) {
    if (lane.done()) continue;
    first = std::min(first, lane.deadline());
    fds.push_back({lane.process().out_fd(), POLLIN, 0});
    fds.push_back({lane.process().err_fd(), POLLIN, 0});
  }
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(first - std::chrono::steady_clock::now());
  poll(fds.data(), fds.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
}

}  // namespace

int run_jobs(std::vector<Connection>& connections, const std::vector<Job>& jobs, double timeout_s,
             const std::function<void(const Row&)>& on_row) {
  std::deque<Lane> lanes;
  for (Connection& connection : connections) {
    Lane& lane = lanes.emplace_back(connection, timeout_s, on_row);
    for (const Job& job : jobs) {
      if (job.blank.device == connection.device()) lane.add(job);
    }
  }
  for (Lane& lane : lanes) lane.next();
  while (!std::all_of(lanes.begin(), lanes.end(), [](const Lane& lane) { return lane.done(); })) {
    wait_for_any(lanes);
    if (stop_signal() != 0) break;
    for (Lane& lane : lanes) {
      if (!lane.done()) lane.update();
    }
  }
  for (Connection& connection : connections) connection.drop();
  return stop_signal();
}

}  // namespace rooflash
