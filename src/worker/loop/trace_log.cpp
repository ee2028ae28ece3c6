#include "worker/loop/trace_log.hpp"

#include <cmath>
#include <cstdlib>

#include "worker/backend.hpp"

namespace rooflash {
namespace {

std::int64_t unix_us() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::microseconds>(now).count();
}

}  // namespace

TraceLog::TraceLog() : start_us_(steady_us()) {
  trace_.start_unix_us = unix_us();
}

void TraceLog::begin(std::string_view phase) {
  const double now = steady_us();
  if (!trace_.phases.empty()) trace_.phases.back().end_us = now;
  trace_.phases.push_back({std::string(phase), now, now});
}

void TraceLog::finish(Row& row) {
  Trace measured = std::move(row.trace).value_or(Trace());
  row.trace.reset();
  if (row.simulated && std::getenv("SOURCE_DATE_EPOCH") != nullptr) return;
  if (!trace_.phases.empty()) trace_.phases.back().end_us = steady_us();
  if (row.time_us) trace_.sample_start_us = std::move(measured.sample_start_us);
  trace_.power_w = std::move(measured.power_w);

  // To tenths: the clocks know no more, and the record stays small.
  const auto rebase = [&](double& us) { us = std::round((us - start_us_) * 10) / 10; };
  for (TracePhase& phase : trace_.phases) {
    rebase(phase.start_us);
    rebase(phase.end_us);
  }
  for (double& start : trace_.sample_start_us) rebase(start);
  for (TracePoint& point : trace_.power_w) rebase(point.at_us);
  row.trace = std::move(trace_);
}

}  // namespace rooflash
