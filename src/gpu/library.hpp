// A shared library opened at run time, so that the program runs with and without it. Never
// unloaded: CUPTI leaves callbacks with the driver.
#pragma once

#include <string>

namespace rooflash {

class Library {
 public:
  Library() = default;
  // Opens `name` (a soname or a path); `error()` says why where it could not.
  explicit Library(const std::string& name, bool only_if_loaded = false);

  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& error() const { return error_; }

  // Points `function` at the symbol; false, with a null pointer, where the library has none.
  template <class Function>
  bool find(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(address(symbol));
    return function != nullptr;
  }
  // Path of the file that holds `symbol`; "" where unknown.
  std::string path_of(const char* symbol) const;

 private:
  void* address(const char* symbol) const;
  void* handle_ = nullptr;
  std::string error_ = "not opened";
};

}  // namespace rooflash
