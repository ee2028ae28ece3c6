#include "cli/folder_lock.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {

void make_folder(const std::string& folder, const char* hint) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw UsageError(
        fmt::format("cannot make the folder {}: {}", printable(folder), error.message()), hint);
  }
}

FolderLock::FolderLock(const std::string& folder, IfHeld if_held, const char* hint) {
  make_folder(folder, hint);
  fd_ = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd_ < 0) {
    throw UsageError(
        fmt::format("cannot open the folder {}: {}", printable(folder), std::strerror(errno)),
        hint);
  }
  int outcome = -1;
  do {
    outcome = flock(fd_, if_held == IfHeld::refuse ? LOCK_EX | LOCK_NB : LOCK_EX);
  } while (outcome != 0 && errno == EINTR);
  if (outcome == 0) return;
  const int error = errno;
  close(fd_);
  if (error == EWOULDBLOCK) {
    throw UsageError(fmt::format("another gate is measuring in {}", printable(folder)),
                     "wait for it, or name another folder with -o");
  }
  throw UsageError(
      fmt::format("cannot lock the folder {}: {}", printable(folder), std::strerror(error)), hint);
}

FolderLock::~FolderLock() {
  close(fd_);
}

}  // namespace rooflash
