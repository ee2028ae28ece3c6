#include "worker/driver/interrupt.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "core/error.hpp"

namespace rooflash {
namespace {

volatile std::sig_atomic_t g_signal = 0;
int g_pipe[2] = {-1, -1};

extern "C" void on_signal(int signal) {
  if (g_signal != 0) _exit(128 + signal);
  g_signal = signal;
  const int saved = errno;
  const char byte = 0;
  [[maybe_unused]] const auto written = write(g_pipe[1], &byte, 1);
  errno = saved;
}

}  // namespace

void ignore_broken_pipes() {
  signal(SIGPIPE, SIG_IGN);
}

void catch_stop_signals() {
  if (g_pipe[0] >= 0) return;
  if (pipe2(g_pipe, O_CLOEXEC | O_NONBLOCK) != 0) {
    throw Error(ExitCode::incomplete, "cannot create a pipe",
                "Close some open files and try again.");
  }
  struct sigaction action = {};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction inherited = {};
    sigaction(signal, nullptr, &inherited);
    if (inherited.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
}

int stop_signal() {
  return g_signal;
}

int stop_fd() {
  return g_pipe[0];
}

}  // namespace rooflash
