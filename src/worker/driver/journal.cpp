#include "worker/driver/journal.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/units.hpp"
#include "core/version.hpp"
#include "record/json.hpp"
#include "record/reader.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

Json header_json(const JournalHeader& header) {
  Json devices = Json::array();
  for (const DeviceInfo& device : header.devices) {
    devices.push_back(
        Json{{"device", device.device}, {"name", device.name}, {"uuid_hash", device.uuid_hash}});
  }
  const Tool& tool = header.tool;
  return Json{{"journal", 1},
              {"schema", kRecordSchema},
              {"version", tool.version},
              {"commit", tool.commit},
              {"dirty", tool.dirty},
              {"build", tool.build},
              {"suite", header.suite},
              {"seed", header.seed},
              {"plan", header.plan},
              {"options", header.options},
              {"devices", std::move(devices)}};
}

// "seed 1 there, 2 here; devices ..." for every key that differs.
std::string differences(const Json& there, const Json& here) {
  std::string text;
  for (const auto& [key, value] : here.items()) {
    const Json found = there.is_object() && there.contains(key) ? there[key] : Json(nullptr);
    if (found == value) continue;
    text += fmt::format("{}{} {} there, {} here", text.empty() ? "" : "; ", key,
                        printable(dump_line(found)), printable(dump_line(value)));
  }
  return text;
}

}  // namespace

Journal::Journal(std::string path, const JournalHeader& header, bool resume)
    : path_(std::move(path)), header_(dump_line(header_json(header))) {
  std::error_code ignored;
  const bool exists = std::filesystem::file_size(path_, ignored) > 0 && !ignored;
  open_file();
  if (exists && resume) {
    load(read_text(path_), header_);
    if (ftruncate(fd_, size_) != 0) fail(std::strerror(errno));
  } else {
    replaced_ = exists;
    if (exists &&
        !std::filesystem::copy_file(path_, path_ + ".old",
                                    std::filesystem::copy_options::overwrite_existing, ignored)) {
      fail("an unfinished run's rows are in it, and cannot be kept as .old: " + ignored.message());
    }
    if (ftruncate(fd_, 0) != 0) fail(std::strerror(errno));
  }
  if (size_ == 0) write_line(header_);
  sync();
  open_done_ = true;
}

Journal::~Journal() {
  if (fd_ >= 0) close(fd_);
}

void Journal::open_file() {
  fd_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (fd_ < 0) fail(std::strerror(errno));
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    throw Error(open_done_ ? ExitCode::incomplete : ExitCode::usage,
                fmt::format("another run is writing {}", printable(path_)),
                "Wait for it, or choose another output with -o.");
  }
}

void Journal::load(const std::string& text, const std::string& header) {
  std::size_t begin = 0;
  int line_number = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const std::string line = text.substr(begin, end - begin);
    const std::string place = fmt::format("{}:{}", printable(path_), ++line_number);
    if (line_number == 1) {
      const std::string other = differences(parse_json(line, place), Json::parse(header));
      if (!other.empty()) {
        throw UsageError(
            fmt::format("{} belongs to another run: {}", printable(path_), other),
            "Repeat the command that wrote it, or run without --resume to start anew.");
      }
    } else {
      try {
        rows_.emplace_back(row_from_json(parse_json(line, place), place), line);
      } catch (const UsageError& error) {
        throw UsageError(error.what(),
                         "The journal is damaged: run without --resume to start anew.");
      }
    }
    size_ = static_cast<std::int64_t>(end) + 1;
  }
}

bool Journal::linked() const {
  struct stat open_one {};
  struct stat named {};
  return fstat(fd_, &open_one) == 0 && stat(path_.c_str(), &named) == 0 &&
         open_one.st_ino == named.st_ino && open_one.st_dev == named.st_dev;
}

void Journal::append(const Row& row) {
  const std::string line = to_json_line(row);
  if (!linked()) {
    std::error_code ignored;
    const auto folder = std::filesystem::path(path_).parent_path();
    if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
    close(fd_);
    open_file();
    if (ftruncate(fd_, 0) != 0) fail(std::strerror(errno));
    size_ = 0;
    write_line(header_);
    for (const auto& [earlier, text] : rows_) write_line(text);
  }
  write_line(line);
  sync();
  rows_.emplace_back(row, line);
}

void Journal::write_line(std::string_view line) {
  std::string text(line);
  text += '\n';
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = write(fd_, text.data() + done, text.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) {
      const std::string reason = std::strerror(errno);
      // Take the cut line back, so that only whole rows stay.
      if (ftruncate(fd_, size_) != 0) fail(reason + "; its last line is cut");
      fail(reason);
    }
    done += static_cast<std::size_t>(n);
  }
  size_ += static_cast<std::int64_t>(text.size());
}

void Journal::sync() {
  if (fdatasync(fd_) != 0) fail(std::strerror(errno));
}

void Journal::remove() {
  unlink(path_.c_str());
}

void Journal::fail(const std::string& what) const {
  throw Error(open_done_ ? ExitCode::incomplete : ExitCode::usage,
              fmt::format("cannot write the journal {}: {}", printable(path_), what),
              rows_.empty()
                  ? "Choose another output with -o."
                  : fmt::format("{} finished rows are kept there. Make room, then repeat the "
                                "command with --resume.",
                                rows_.size()));
}

}  // namespace rooflash
