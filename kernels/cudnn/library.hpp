// Finds and opens cuDNN at run time, so that the worker runs with and without it.
#pragma once

#include <string>
#include <vector>

#include "kernel.hpp"

namespace rooflash::cudnn {

inline constexpr int kOldestVersion = 91900;  // as cudnnGetVersion() has it: 9.19.0

// A folder that holds libcudnn.so.9 and its parts.
struct Folder {
  std::string path;
  int version = 0;      // of the library in it; 0 where it cannot be told
  std::string problem;  // why; "" when fine
};

// The folder of ROOFLASH_CUDNN alone where that is set (a folder, or the library in it), else that
// of the loader's libcudnn.so.9 and those of the Pythons in PATH, each once.
std::vector<std::string> candidate_folders();

// Asked once a path.
const Folder& look_into(const std::string& path);

// The newest of `folders`; where none can be used, `missing` says why.
VendorLibrary choose_library(const std::vector<std::string>& folders);

// The library that this process takes, chosen once. `missing` also where this build cannot use one.
const VendorLibrary& chosen_library();
inline VendorLibrary library_in_use() {
  return chosen_library();
}

// Opens the library of `folder`, its parts first and by their paths: they name one another without
// a folder, and another cuDNN may lie where the loader looks. Throws UnsupportedError.
void* open_library(const std::string& folder);

}  // namespace rooflash::cudnn
