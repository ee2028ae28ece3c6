// The one exception type of rooflash. Thrown where a fault is found, caught once in main().
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "core/exit_code.hpp"

namespace rooflash {

// `what()` says what is wrong and why, with the offending value and its place (flag, or file and
// line); `hint` says what to do about it. Printed as "rooflash: error: <what>" and "hint: <hint>".
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what, std::string hint = {})
      : std::runtime_error(what), code_(code), hint_(std::move(hint)) {}
  ExitCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ExitCode code_;
  std::string hint_;
};

// Bad flag, suite, record or path: exit code 2.
class UsageError : public Error {
 public:
  explicit UsageError(const std::string& what, std::string hint = {})
      : Error(ExitCode::usage, what, std::move(hint)) {}
};

// A kernel, or the vendor's library behind it, does not take the case: the row is `unsupported`,
// with what() as its reason.
class UnsupportedError : public Error {
 public:
  explicit UnsupportedError(const std::string& what) : Error(ExitCode::incomplete, what) {}
};

// The binary holds no code of a kernel for this GPU: the row is `unsupported`, not `failed`.
class NotBuiltError : public Error {
 public:
  explicit NotBuiltError(const std::string& what) : Error(ExitCode::incomplete, what) {}
};

}  // namespace rooflash
