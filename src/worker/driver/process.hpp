// One worker process: its pipes, its lines, its end. Linux only.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace rooflash {

using Deadline = std::chrono::steady_clock::time_point;

// Path of the worker: ROOFLASH_WORKER, else `rooflash-worker` beside this executable. Throws Error
// where it is not an executable file.
std::string worker_path();

class WorkerProcess {
 public:
  // Starts `path` with `args`. The child leads its own process group, so that Ctrl-C reaches the
  // driver alone, and is killed by the kernel when the driver dies in any way. It inherits the
  // environment, but for the variables named in `without`.
  WorkerProcess(const std::string& path, const std::vector<std::string>& args,
                const std::vector<std::string>& without = {});
  ~WorkerProcess();  // kills and reaps
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  // Writes one line; false where the worker no longer reads.
  bool send(const std::string& line);
  void close_stdin();

  int out_fd() const { return out_; }  // -1 once closed
  int err_fd() const { return err_; }
  // Takes what the worker has written, without blocking. False once its stdout is closed.
  bool pump();
  std::optional<std::string> next_line();
  // The next line, waiting for it. Nothing at the deadline, at the end of the worker's output, or
  // when a signal asks the driver to stop.
  std::optional<std::string> wait_line(Deadline deadline);

  // Kills the process group with SIGKILL where it still runs, and reaps it.
  void kill();
  // Waits until `deadline` for the process to end by itself, then kills it. Gives the wait status.
  int finish(Deadline deadline);
  // "SIGSEGV" where a signal ended it, "exit code 3", or "" for a clean end.
  static std::string describe(int wait_status);
  // The last line that the worker wrote on stderr, for the reason of a failed row.
  std::string stderr_tail() const;
  // The last 4 KiB that it wrote there.
  const std::string& stderr_text() const { return stderr_; }

 private:
  bool reap(int flags);
  void read_stderr();

  pid_t pid_ = -1;
  int in_ = -1;
  int out_ = -1;
  int err_ = -1;
  bool reaped_ = false;
  int status_ = 0;
  std::string partial_;
  std::deque<std::string> lines_;
  std::string stderr_;
};

}  // namespace rooflash
