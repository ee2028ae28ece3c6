#include "gpu/library.hpp"

#include <dlfcn.h>

namespace rooflash {

Library::Library(const std::string& name, bool only_if_loaded) {
  const int flags = RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE | (only_if_loaded ? RTLD_NOLOAD : 0);
  handle_ = dlopen(name.c_str(), flags);
  if (handle_ != nullptr) {
    error_.clear();
    return;
  }
  const char* text = dlerror();
  error_ = text != nullptr ? text : name + " is not loaded";
}

void* Library::address(const char* symbol) const {
  return handle_ != nullptr ? dlsym(handle_, symbol) : nullptr;
}

std::string Library::path_of(const char* symbol) const {
  void* const found = address(symbol);
  Dl_info info{};
  if (found == nullptr || dladdr(found, &info) == 0 || info.dli_fname == nullptr) return {};
  return info.dli_fname;
}

}  // namespace rooflash
