#include "worker/doctor/check.hpp"

#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {

const char* to_string(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return "ok";
    case CheckStatus::warn:
      return "warn";
    case CheckStatus::fail:
      break;
  }
  return "fail";
}

CheckStatus check_status(const std::string& text) {
  for (const CheckStatus status : {CheckStatus::ok, CheckStatus::warn, CheckStatus::fail}) {
    if (text == to_string(status)) return status;
  }
  throw UsageError("unknown status of a check: " + printable(text, 20));
}

}  // namespace rooflash
