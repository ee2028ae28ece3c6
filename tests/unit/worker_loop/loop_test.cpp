// The protocol loop, in a child process behind pipes.
#include "worker/loop/loop.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "record/json.hpp"

namespace rooflash {
namespace {

// Writing to a worker that has just ended must be an error here, not the test's death.
[[maybe_unused]] const auto kIgnoreBrokenPipes = std::signal(SIGPIPE, SIG_IGN);

using Json = nlohmann::ordered_json;

constexpr const char* kStart = R"({"type":"start","device":"sim:h200"})";

// A worker whose device is always simulated; "lost" gives one that is lost after its first case.
class Worker {
 public:
  Worker() {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    std::fflush(stdout);  // else the child would write what is buffered into the pipe
    pid_ = fork();
    if (pid_ == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      for (const int fd : {in[0], in[1], out[0], out[1]}) close(fd);
      const int reply_fd = take_stdout();
      std::puts("a stray line of a kernel");
      std::fflush(stdout);
      _exit(serve(STDIN_FILENO, reply_fd, make));
    }
    close(in[0]);
    close(out[1]);
    in_ = in[1];
    out_ = out[0];
  }
  ~Worker() {
    hang_up();
    close(out_);
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void send(const std::string& line) {
    const std::string text = line + "\n";
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t written = write(in_, text.data() + done, text.size() - done);
      // A worker that refused the line may have ended before its end; its replies tell why.
      if (written < 0 && errno == EPIPE) return;
      ASSERT_GT(written, 0);
      done += static_cast<std::size_t>(written);
    }
  }
  void hang_up() {
    if (in_ >= 0) close(in_);
    in_ = -1;
  }

  // The next reply; a null value at the end of the output or after 20 s.
  Json receive() {
    for (;;) {
      const std::size_t end = pending_.find('\n');
      if (end != std::string::npos) {
        const std::string line = pending_.substr(0, end);
        pending_.erase(0, end + 1);
        return parse_json(line, "reply");
      }
      pollfd wait{out_, POLLIN, 0};
      char buffer[4096];
      if (poll(&wait, 1, 20'000) != 1) return {};
      const ssize_t count = read(out_, buffer, sizeof(buffer));
      if (count <= 0) return {};
      pending_.append(buffer, static_cast<std::size_t>(count));
    }
  }
  // Skips phases.
  Json receive_row() {
    Json json = receive();
    while (json.is_object() && json["type"] == "phase") json = receive();
    return json;
  }

  // Wait status once the process has ended, or -1 after 10 s.
  int ended() {
    for (int i = 0; i < 1000; ++i) {
      int status = 0;
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return status;
      }
      usleep(10'000);
    }
    return -1;
  }
  int exit_code() {
    const int status = ended();
    return status != -1 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  class LostAfterOneCase : public Backend {
   public:
    DeviceInfo device() override { return sim_->device(); }
    Environment environment() override { return sim_->environment(); }
    Row run(const CaseRequest& request, const PhaseSink& phase) override {
      lost_ = true;
      return sim_->run(request, phase);
    }
    Ceilings ceilings(bool sustained) override { return sim_->ceilings(sustained); }
    std::vector<DoctorCheck> doctor() override { return sim_->doctor(); }
    std::vector<DoctorCheck> prove_counters(const std::string& counters) override {
      return sim_->prove_counters(counters);
    }
    MetricAnswer metrics(const std::vector<std::string>&) override { return {}; }
    CountedProfile profile(const ProfileRequest&, const PhaseSink&) override { return {}; }
    bool lost() const override { return lost_; }

   private:
    std::unique_ptr<Backend> sim_ = make_sim_backend("h200");
    bool lost_ = false;
  };

  static std::unique_ptr<Backend> make(const std::string& device) {
    if (device == "lost") return std::make_unique<LostAfterOneCase>();
    if (device == "none") throw Error(ExitCode::no_gpu, "no GPU", "buy one");
    return make_sim_backend("h200");
  }

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  std::string pending_;
};

std::string run_line(const std::string& kernel, std::int64_t index = 3) {
  CaseRequest request;
  request.index = index;
  request.kernel = kernel;
  return dump_line(Json{{"type", "run"}, {"request", to_json(request)}});
}

TEST(Loop, HelloPhasesAndRows) {
  Worker worker;
  worker.send(kStart);
  const Json hello = worker.receive();
  EXPECT_EQ(hello["type"], "hello");
  EXPECT_EQ(hello["protocol"], kProtocolVersion);
  EXPECT_EQ(hello["device"]["device"], "sim:h200");
  worker.send(run_line("fa2"));
  for (const char* phase : {"setup", "verify", "timed"}) {
    EXPECT_EQ(worker.receive(), (Json{{"type", "phase"}, {"index", 3}, {"phase", phase}}));
  }
  const Json reply = worker.receive();
  EXPECT_EQ(reply["type"], "row");
  EXPECT_EQ(reply["index"], 3);
  const Row row = row_from_json(reply["row"], "row");
  EXPECT_EQ(row.status, Status::ok);
  ASSERT_TRUE(row.trace);
  ASSERT_EQ(row.trace->phases.size(), 3U);
  EXPECT_EQ(row.trace->phases[1].name, "verify");
  EXPECT_EQ(row.trace->phases[1].end_us, row.trace->phases[2].start_us);
  EXPECT_TRUE(row.trace->sample_start_us.empty());
  worker.send(run_line("naive", 4));
  EXPECT_EQ(worker.receive_row()["index"], 4);
}

TEST(Loop, SeveralRequestsInOneWriteAndOneInTwo) {
  Worker worker;
  worker.send(std::string(kStart) + "\n" + run_line("fa2", 1) + "\n" + run_line("fa2", 2));
  EXPECT_EQ(worker.receive()["type"], "hello");
  EXPECT_EQ(worker.receive_row()["index"], 1);
  EXPECT_EQ(worker.receive_row()["index"], 2);
}

TEST(Loop, CeilingsAndDoctor) {
  Worker worker;
  worker.send(kStart);
  worker.receive();
  worker.send(R"({"type":"ceilings"})");
  EXPECT_EQ(worker.receive()["ceilings"]["source"], "model");
  worker.send(R"({"type":"doctor"})");
  EXPECT_EQ(worker.receive()["checks"][0]["status"], "ok");
  worker.send(R"({"type":"proof","counters":"hbm"})");
  EXPECT_EQ(worker.receive()["checks"].size(), 0U);
}

TEST(Loop, MetricsAndProfileOfASimulatedDevice) {
  Worker worker;
  worker.send(kStart);
  worker.receive();
  worker.send(R"({"type":"metrics","names":["dram__bytes_read.sum"]})");
  const Json answer = worker.receive();
  EXPECT_EQ(answer["type"], "metrics");
  EXPECT_EQ(answer["metrics"]["status"], "unavailable");
  ProfileRequest request;
  request.request.kernel = "fa2";
  request.groups = {{"dram__bytes_read.sum"}};
  worker.send(dump_line(Json{{"type", "profile"}, {"request", to_json(request)}}));
  const Json reply = worker.receive();
  EXPECT_EQ(reply["type"], "profile");
  const CountedProfile profile = counted_profile_from_json(reply["profile"], "profile");
  EXPECT_EQ(profile.row.status, Status::unsupported);
  EXPECT_NE(profile.row.reason.find("nothing to profile"), std::string::npos);
  EXPECT_TRUE(profile.groups.empty());
}

TEST(Loop, EndOfInputEndsAnIdleWorker) {
  Worker worker;
  worker.send(kStart);
  worker.receive();
  worker.hang_up();
  EXPECT_EQ(worker.exit_code(), 0);
}

TEST(Loop, EndOfInputEndsARunningCase) {
  Worker worker;
  worker.send(kStart);
  worker.receive();
  worker.send(run_line("test_hang"));
  EXPECT_EQ(worker.receive()["phase"], "setup");
  EXPECT_EQ(worker.receive()["phase"], "verify");
  worker.hang_up();
  EXPECT_EQ(worker.exit_code(), 0);
}

TEST(Loop, CrashEndsTheProcessBySignal) {
  Worker worker;
  worker.send(kStart);
  worker.send(run_line("test_crash"));
  int status = worker.ended();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
  Worker aborting;
  aborting.send(kStart);
  aborting.send(run_line("test_illegal"));
  status = aborting.ended();
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

TEST(Loop, LostDeviceEndsAfterItsRow) {
  Worker worker;
  worker.send(R"({"type":"start","device":"lost"})");
  worker.receive();
  worker.send(run_line("fa2"));
  EXPECT_EQ(worker.receive_row()["type"], "row");
  EXPECT_TRUE(worker.receive().is_null());
  EXPECT_EQ(worker.exit_code(), static_cast<int>(ExitCode::incomplete));
}

TEST(Loop, NoGpuIsAnErrorWithItsCode) {
  Worker worker;
  worker.send(R"({"type":"start","device":"none"})");
  EXPECT_EQ(worker.receive(),
            (Json{{"type", "error"}, {"code", 77}, {"what", "no GPU"}, {"hint", "buy one"}}));
  EXPECT_EQ(worker.exit_code(), 77);
}

TEST(Loop, MalformedRequestsAreRefused) {
  const std::string bad[] = {"{",
                             "[]",
                             "null",
                             R"({"type":1})",
                             R"({"type":"stop"})",
                             R"({"type":"run"})",
                             R"({"type":"run","request":{}})",
                             R"({"type":"run","type":"run"})",
                             "\xff\xfe",
                             std::string(2 << 20, 'x')};
  for (const std::string& line : bad) {
    Worker worker;
    worker.send(kStart);
    worker.receive();
    worker.send(line);
    const Json reply = worker.receive();
    EXPECT_EQ(reply.value("type", ""), "error") << line.substr(0, 60);
    EXPECT_EQ(reply.value("code", 0), 2);
    EXPECT_EQ(worker.exit_code(), 2);
  }
  Worker early;
  early.send(run_line("fa2"));
  EXPECT_EQ(early.receive()["code"], 2);
}

}  // namespace
}  // namespace rooflash
