#include "record/reader.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/units.hpp"
#include "record/json.hpp"

namespace rooflash {
namespace {

std::string shown(const std::string& path) {
  return path == "-" ? "stdin" : printable(path);
}

[[noreturn]] void fail_read(const std::string& path, int error) {
  throw UsageError("cannot read " + shown(path) + ": " + std::strerror(error));
}

// A descriptor that closes itself.
class Input {
 public:
  explicit Input(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) fail_read(path, errno);
  }
  ~Input() {
    if (fd_ != STDIN_FILENO) close(fd_);
  }
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

std::string read_text(const std::string& path) {
  const Input input(path);
  std::string text;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t got = read(input.fd(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (errno != EINTR) {
      fail_read(path, errno);
    }
  }
}

Record read_record(const std::string& path) {
  const std::string text = read_text(path);
  return record_from_json(parse_json(text, shown(path)), shown(path));
}

}  // namespace rooflash
