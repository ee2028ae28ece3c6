// One finding of `rooflash doctor`.
#pragma once

#include <string>
#include <vector>

namespace rooflash {

enum class CheckStatus {
  ok,
  warn,  // worth knowing; what is measured is right
  fail,  // a run would not be trustworthy
};

struct DoctorCheck {
  std::string id;  // stable: docs/formats.md lists them
  CheckStatus status = CheckStatus::ok;
  std::string detail;  // what was found, and what it means
  std::string fix;     // the command or step that mends it; "" exactly where ok
};

const char* to_string(CheckStatus status);
// Throws UsageError on any text but "ok", "warn" and "fail".
CheckStatus check_status(const std::string& text);

}  // namespace rooflash
