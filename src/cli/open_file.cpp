#include "cli/open_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "cli/terminal.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

#ifdef __APPLE__
constexpr const char* kOpener = "open";
#else
constexpr const char* kOpener = "xdg-open";
#endif

// "", or what went wrong. What the program prints is not shown: it is often a browser's chatter.
std::string run_opener(const std::string& path) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  }
  char* const argv[] = {const_cast<char*>(kOpener), const_cast<char*>(path.c_str()), nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, kOpener, &actions, nullptr, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT) return fmt::format("there is no {} here", kOpener);
  if (error != 0) return fmt::format("{} does not start: {}", kOpener, std::strerror(error));
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return {};
  return fmt::format("{} could not show it", kOpener);
}

}  // namespace

void open_file(const std::string& path) {
  const std::string whole = std::filesystem::absolute(path).lexically_normal().string();
  const std::string fault =
      isatty(STDOUT_FILENO) == 0 ? "stdout is no terminal" : run_opener(whole);
  if (fault.empty()) return;
  print_message(fmt::format("--open: {}; open {} in a browser", fault, printable(whole, 4000)));
}

}  // namespace rooflash
