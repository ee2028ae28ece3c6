#include "cli/terminal.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "core/error.hpp"

namespace rooflash {
namespace {

// 0, or the errno of the write that failed.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Whether the terminal takes UTF-8, by the variables that say so, first one first. Files and pipes
// always get it.
bool takes_utf8(int fd) {
  if (isatty(fd) == 0) return true;
  for (const char* variable : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    if (!is_set(variable)) continue;
    const std::string_view name = std::getenv(variable);
    return name.find("UTF-8") != std::string_view::npos ||
           name.find("utf8") != std::string_view::npos;
  }
  return false;
}

}  // namespace

void print_result(std::string_view text) {
  const int error = write_all(STDOUT_FILENO, text);
  if (error != 0 && error != EPIPE) {
    throw Error(ExitCode::incomplete,
                fmt::format("cannot write the result to stdout: {}", std::strerror(error)));
  }
}

void print_message(std::string_view text) {
  write_all(STDERR_FILENO, fmt::format("rooflash: {}\n", text));
}

void print_error(std::string_view what, std::string_view hint) {
  print_message(fmt::format("error: {}", what));
  if (!hint.empty()) write_all(STDERR_FILENO, fmt::format("hint: {}\n", hint));
}

TableOptions table_options(const std::string& color) {
  TableOptions options;
  options.width = terminal_width(STDOUT_FILENO);
  const char* term = std::getenv("TERM");
  const bool dumb = term != nullptr && std::string_view(term) == "dumb";
  options.color = color == "always" ||
                  (color == "auto" && isatty(STDOUT_FILENO) && !is_set("NO_COLOR") && !dumb);
  options.ascii = !takes_utf8(STDOUT_FILENO);
  return options;
}

int terminal_width(int fd) {
  constexpr int kLeast = 40;
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
    return std::max<int>(kLeast, size.ws_col);
  }
  if (const char* text = std::getenv("COLUMNS")) {
    int columns = 0;
    const char* end = text + std::strlen(text);
    const auto parsed = std::from_chars(text, end, columns);
    if (parsed.ec == std::errc() && parsed.ptr == end && columns > 0) {
      return std::max(kLeast, columns);
    }
  }
  return 100;
}

}  // namespace rooflash
