// Keeps two commands from working in one folder at a time.
#pragma once

#include <string>

namespace rooflash {

// Makes `folder` and those above it. Throws UsageError, with `hint`, where it cannot.
void make_folder(const std::string& folder, const char* hint);

// Holds a folder for as long as it lives; the lock ends with the process at the latest.
class FolderLock {
 public:
  enum class IfHeld { wait, refuse };

  // Makes the folder where it is missing. Throws UsageError, with `hint`, where it cannot, or where
  // another gate holds it and `if_held` refuses.
  FolderLock(const std::string& folder, IfHeld if_held, const char* hint);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int fd_;
};

}  // namespace rooflash
