#include "record/reader.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/units.hpp"
#include "record/json.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

std::string shown(const std::string& path) {
  return path == "-" ? "stdin" : printable(path);
}

[[noreturn]] void fail_read(const std::string& path, int error) {
  throw UsageError("cannot read " + shown(path) + ": " + std::strerror(error));
}

[[noreturn]] void fail_size(const std::string& path) {
  throw UsageError("cannot read " + shown(path) + ": it is larger than 1 GiB",
                   "no record is that large: check the path, or split the sweep");
}

// A descriptor that closes itself.
class Input {
 public:
  // A pipe without a writer is opened without waiting for one, and then refused.
  explicit Input(const std::string& path)
      : fd_(path == "-" ? STDIN_FILENO : open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC)) {
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
  struct stat status {};
  if (fstat(input.fd(), &status) != 0) fail_read(path, errno);
  if (S_ISDIR(status.st_mode)) fail_read(path, EISDIR);
  if (path != "-" && !S_ISREG(status.st_mode)) {
    throw UsageError("cannot read " + shown(path) + ": it is not a regular file",
                     "name a file, or - to read the standard input");
  }
  if (S_ISREG(status.st_mode) && static_cast<std::size_t>(status.st_size) > kMaxBytes) {
    fail_size(path);
  }
  std::string text;
  std::array<char, 1 << 16> buffer{};
  for (;;) {
    const ssize_t got = read(input.fd(), buffer.data(), buffer.size());
    if (got == 0) return text;
    if (got > 0) {
      text.append(buffer.data(), static_cast<std::size_t>(got));
      if (text.size() > kMaxBytes) fail_size(path);
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
