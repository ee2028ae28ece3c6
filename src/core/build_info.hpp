// What this binary was built from. Written anew in each build.
#pragma once

#include <string>

namespace rooflash {

struct BuildInfo {
  std::string version;
  std::string commit;  // 12 hex digits, or "unknown" outside a git checkout
  bool dirty;          // tracked files differed from the commit
  std::string build;   // build type, compilers, CUDA architectures
};

const BuildInfo& build_info();

}  // namespace rooflash
