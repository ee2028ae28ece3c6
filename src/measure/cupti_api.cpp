#include "measure/cupti_api.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>
#include <vector>

namespace rooflash {
namespace {

std::string directory_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? std::string() : path.substr(0, slash + 1);
}

std::vector<std::string> toolkit_directories() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') roots.emplace_back(value);
  }
  roots.emplace_back("/usr/local/cuda");
  std::vector<std::string> directories;
  for (const std::string& root : roots) {
    directories.push_back(root + "/lib64/");
    directories.push_back(root + "/extras/CUPTI/lib64/");
  }
  return directories;
}

}  // namespace

bool CuptiApi::open(const std::string& name, bool only_if_loaded) {
  const std::string directory = directory_of(name);
  if (!directory.empty()) perf_host_ = Library(directory + "libnvperf_host.so");
  library_ = Library(name, only_if_loaded);
  return static_cast<bool>(library_);
}

CuptiApi::CuptiApi() {
  const char* chosen = std::getenv("ROOFLASH_CUPTI");
  if (chosen != nullptr && std::string_view(chosen) == "0") {
    error_ = "switched off by ROOFLASH_CUPTI=0";
    return;
  }
  const std::string soname = fmt::format("libcupti.so.{}", CUDA_VERSION / 1000);
  if (chosen != nullptr && *chosen != '\0') {
    open(chosen);
  } else if (!open(soname, true) && !open(soname)) {
    for (const std::string& directory : toolkit_directories()) {
      if (open(directory + soname)) break;
    }
  }
  if (!library_) {
    error_ = fmt::format(
        "no CUPTI library: {}; install the toolkit's CUPTI, or name the file in "
        "ROOFLASH_CUPTI",
        library_.error());
    return;
  }
  path_ = library_.path_of("cuptiGetVersion");
  if (!perf_host_) perf_host_ = Library(directory_of(path_) + "libnvperf_host.so");
#define ROOFLASH_CUPTI_FIND(function)                                                  \
  if (!library_.find(function, #function) && error_.empty()) {                         \
    error_ = path_ + " has no " #function ": it is older than the toolkit built with"; \
  }
  ROOFLASH_CUPTI_FUNCTIONS(ROOFLASH_CUPTI_FIND)
#undef ROOFLASH_CUPTI_FIND
#ifdef CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN
  library_.find(cuptiSubscribe_v2, "cuptiSubscribe_v2");
#endif
  if (cuptiGetVersion != nullptr) (void)cuptiGetVersion(&version_);
}

std::string CuptiApi::text(CUptiResult code) const {
  const char* name = nullptr;
  if (cuptiGetResultString != nullptr) (void)cuptiGetResultString(code, &name);
  return fmt::format("{} ({})", name != nullptr ? name : "CUPTI error", static_cast<int>(code));
}

}  // namespace rooflash
