#include "worker/driver/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "core/error.hpp"
#include "core/units.hpp"
#include "worker/driver/interrupt.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxLineBytes = 64 << 20;  // a row with its samples is a few KiB
constexpr std::size_t kStderrTailBytes = 4096;

[[noreturn]] void system_error(const std::string& what) {
  throw Error(ExitCode::incomplete, fmt::format("{}: {}", what, std::strerror(errno)));
}

// Runs in the child between fork and exec: async-signal-safe calls only.
[[noreturn]] void exec_child(const char* path, char* const* argv, char* const* environment, int in,
                             int out, int err, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // the driver died before the line above
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(signal, SIG_DFL);
  dup2(in, STDIN_FILENO);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execve(path, argv, environment);
  _exit(127);
}

}  // namespace

std::string worker_path() {
  namespace fs = std::filesystem;
  const char* set = std::getenv("ROOFLASH_WORKER");
  const bool by_variable = set != nullptr && *set != '\0';
  std::error_code ignored;
  const fs::path path =
      by_variable ? fs::path(set)
                  : fs::read_symlink("/proc/self/exe", ignored).parent_path() / "rooflash-worker";
  if (access(path.c_str(), X_OK) != 0 || fs::is_directory(path, ignored)) {
    throw Error(ExitCode::usage,
                fmt::format("the worker {} cannot be run: {}", printable(path.string()),
                            std::strerror(errno != 0 ? errno : EISDIR)),
                by_variable ? "Unset ROOFLASH_WORKER, or set it to the rooflash-worker executable."
                            : "Build rooflash-worker, or set ROOFLASH_WORKER to its path.");
  }
  return path.string();
}

WorkerProcess::WorkerProcess(const std::string& path, const std::vector<std::string>& args,
                             const std::vector<std::string>& without) {
  catch_stop_signals();
  // The lines between fork and exec must not allocate, so argv and the environment are built here.
  std::vector<char*> argv{const_cast<char*>(path.c_str())};
  for (const std::string& arg : args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const bool left_out = std::any_of(without.begin(), without.end(), [&](const std::string& name) {
      return std::string_view(*variable).starts_with(name + '=');
    });
    if (!left_out) environment.push_back(*variable);
  }
  environment.push_back(nullptr);

  // Close-on-exec, so that no other worker holds this one's stdin open.
  int pipes[3][2] = {{-1, -1}, {-1, -1}, {-1, -1}};
  for (auto& ends : pipes) {
    if (pipe2(ends, O_CLOEXEC) != 0) system_error("cannot create a pipe for a worker");
  }
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ < 0) system_error("cannot start a worker");
  if (pid_ == 0)
    exec_child(path.c_str(), argv.data(), environment.data(), pipes[0][0], pipes[1][1], pipes[2][1],
               parent);
  close(pipes[0][0]);
  close(pipes[1][1]);
  close(pipes[2][1]);
  in_ = pipes[0][1];
  out_ = pipes[1][0];
  err_ = pipes[2][0];
  fcntl(out_, F_SETFL, O_NONBLOCK);
  fcntl(err_, F_SETFL, O_NONBLOCK);
}

WorkerProcess::~WorkerProcess() {
  kill();
  for (const int fd : {in_, out_, err_}) {
    if (fd >= 0) close(fd);
  }
}

bool WorkerProcess::send(const std::string& line) {
  std::string text = line + '\n';
  std::size_t done = 0;
  while (in_ >= 0 && done < text.size()) {
    const ssize_t n = write(in_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    done += static_cast<std::size_t>(n);
  }
  return in_ >= 0;
}

void WorkerProcess::close_stdin() {
  if (in_ >= 0) close(in_);
  in_ = -1;
}

void WorkerProcess::read_stderr() {
  char buffer[4096];
  ssize_t n = 0;
  while (err_ >= 0 && (n = read(err_, buffer, sizeof buffer)) > 0) {
    stderr_.append(buffer, static_cast<std::size_t>(n));
    if (stderr_.size() > kStderrTailBytes) stderr_.erase(0, stderr_.size() - kStderrTailBytes);
  }
  if (err_ >= 0 && n == 0) {
    close(err_);
    err_ = -1;
  }
}

bool WorkerProcess::pump() {
  read_stderr();
  char buffer[65536];
  ssize_t n = 0;
  while (out_ >= 0 && ((n = read(out_, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR))) {
    if (n < 0) continue;
    const char* begin = buffer;
    const char* const end = buffer + n;
    while (const void* newline = std::memchr(begin, '\n', static_cast<std::size_t>(end - begin))) {
      partial_.append(begin, static_cast<const char*>(newline));
      lines_.push_back(std::move(partial_));
      partial_.clear();
      begin = static_cast<const char*>(newline) + 1;
    }
    partial_.append(begin, end);
    if (partial_.size() > kMaxLineBytes) {
      kill();
      stderr_ += "\nended by rooflash: a line without an end";
      partial_.clear();
    }
  }
  if (out_ >= 0 && n == 0) {
    close(out_);
    out_ = -1;
  }
  return out_ >= 0;
}

std::optional<std::string> WorkerProcess::next_line() {
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

std::optional<std::string> WorkerProcess::wait_line(Deadline deadline) {
  while (true) {
    if (auto line = next_line()) return line;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (out_ < 0 || left.count() <= 0 || stop_signal() != 0) return std::nullopt;
    pollfd fds[] = {{out_, POLLIN, 0}, {err_, POLLIN, 0}, {stop_fd(), POLLIN, 0}};
    poll(fds, 3, static_cast<int>(std::min<std::int64_t>(left.count(), 60'000)));
    pump();
  }
}

bool WorkerProcess::reap(int flags) {
  while (!reaped_) {
    const pid_t got = waitpid(pid_, &status_, flags);
    if (got == 0) return false;
    if (got == pid_ || errno != EINTR) reaped_ = true;
  }
  return true;
}

void WorkerProcess::kill() {
  if (!reaped_) ::kill(-pid_, SIGKILL);
  // The child may not have made its group yet.
  if (!reaped_) ::kill(pid_, SIGKILL);
  reap(0);
}

int WorkerProcess::finish(Deadline deadline) {
  while (!reap(WNOHANG) && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  kill();
  read_stderr();
  return status_;
}

std::string WorkerProcess::describe(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const char* name = sigabbrev_np(WTERMSIG(wait_status));
    return name ? fmt::format("SIG{}", name) : fmt::format("signal {}", WTERMSIG(wait_status));
  }
  if (WEXITSTATUS(wait_status) == 0) return {};
  return fmt::format("exit code {}", WEXITSTATUS(wait_status));
}

std::string WorkerProcess::stderr_tail() const {
  const std::size_t end = stderr_.find_last_not_of(" \n\r\t");
  if (end == std::string::npos) return {};
  std::size_t begin = stderr_.rfind('\n', end);
  begin = begin == std::string::npos ? 0 : begin + 1;
  return printable(std::string_view(stderr_).substr(begin, end + 1 - begin));
}

}  // namespace rooflash
