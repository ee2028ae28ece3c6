#include "record/writer.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/units.hpp"
#include "record/json.hpp"

namespace rooflash {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail_write(const std::string& path, const std::string& reason) {
  throw UsageError("cannot write " + printable(path) + ": " + reason,
                   "choose another path, or make room or the folder for this one");
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t put = write(fd, content.data(), content.size());
    if (put >= 0) {
      content.remove_prefix(static_cast<std::size_t>(put));
    } else if (errno != EINTR) {
      fail_write(path, std::strerror(errno));
    }
  }
}

fs::path folder_of(const fs::path& file) {
  return file.has_parent_path() ? file.parent_path() : fs::path(".");
}

// The file that `path` names, through symbolic links; it need not exist.
fs::path resolved(const std::string& path) {
  constexpr int kMaxLinks = 40;  // as Linux has it
  fs::path target = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(target, error); ++links) {
    if (links == kMaxLinks) fail_write(path, std::strerror(ELOOP));
    target = folder_of(target) / fs::read_symlink(target, error);  // an absolute one stands alone
    if (error) fail_write(path, error.message());
  }
  return target;
}

// A temporary file beside `target`, removed again unless it was renamed to it.
class TemporaryFile {
 public:
  TemporaryFile(const fs::path& target, const std::string& shown_path)
      : target_(target),
        path_((folder_of(target) / ("." + target.filename().string() + ".XXXXXX")).string()),
        shown_path_(shown_path) {
    std::error_code error;
    const fs::file_status status = fs::status(target, error);
    if (fs::is_directory(status)) fail_write(shown_path_, "it is a folder");
    if (fs::exists(status) && !fs::is_regular_file(status)) {
      fail_write(shown_path_, "it is not a regular file");
    }
    fd_ = mkostemp(path_.data(), O_CLOEXEC);
    if (fd_ < 0) fail_write(shown_path_, std::strerror(errno));
  }
  ~TemporaryFile() {
    if (fd_ >= 0) {
      close(fd_);
      unlink(path_.c_str());
    }
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void commit(std::string_view content) {
    write_all(fd_, content, shown_path_);
    // mkostemp made it private: give it the old file's mode, or that of a new file.
    struct stat old {};
    const mode_t mask = umask(0);
    umask(mask);
    const mode_t mode = stat(target_.c_str(), &old) == 0 ? old.st_mode & 07777U : 0666U & ~mask;
    if (fchmod(fd_, mode) != 0 || fsync(fd_) != 0 ||
        std::rename(path_.c_str(), target_.c_str()) != 0) {
      fail_write(shown_path_, std::strerror(errno));
    }
    close(fd_);
    fd_ = -1;
  }

 private:
  fs::path target_;
  std::string path_;
  const std::string& shown_path_;
  int fd_ = -1;
};

}  // namespace

std::string record_text(const Record& record) {
  nlohmann::ordered_json json = to_json(record);
  const nlohmann::ordered_json rows = std::move(json["rows"]);
  json.erase("rows");
  std::string text = json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize(text.size() - 2);  // "\n}"
  text += ",\n  \"rows\": [";
  const char* separator = "\n    ";
  for (const auto& row : rows) {
    text += separator + dump_line(row);
    separator = ",\n    ";
  }
  text += rows.empty() ? "]\n}\n" : "\n  ]\n}\n";
  return text;
}

void write_file_atomic(const std::string& path, std::string_view content) {
  TemporaryFile(resolved(path), path).commit(content);
}

void check_output_path(const std::string& path) {
  if (path.empty()) throw UsageError("the output path is empty", "give a file name with -o");
  if (path == "-") {
    throw UsageError(
        "- is no output file",
        "without an output file the result goes to stdout; ./- is a file of that name");
  }
  const fs::path folder = folder_of(path);
  std::error_code error;
  if (folder.is_relative() && !fs::exists(folder, error)) fs::create_directory(folder, error);
  const TemporaryFile probe(resolved(path), path);
}

}  // namespace rooflash
