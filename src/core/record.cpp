#include "core/record.hpp"

#include <array>

namespace rooflash {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::unsupported:
      return "unsupported";
    case Status::wrong:
      return "wrong";
    case Status::failed:
      return "failed";
    case Status::oom:
      return "oom";
    case Status::crashed:
      return "crashed";
    case Status::timeout:
      return "timeout";
    case Status::not_run:
      return "not_run";
  }
  return "?";
}

std::string_view to_string(Measure measure) {
  return measure == Measure::time_us ? "time_us" : "quantize_us";
}

std::optional<Status> parse_status(std::string_view text) {
  for (const Status status : {Status::ok, Status::unsupported, Status::wrong, Status::failed,
                              Status::oom, Status::crashed, Status::timeout, Status::not_run}) {
    if (text == to_string(status)) return status;
  }
  return std::nullopt;
}

}  // namespace rooflash
