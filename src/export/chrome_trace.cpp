// Chrome's Trace Event Format, JSON object form, which Perfetto and chrome://tracing read.
#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/units.hpp"
#include "export/cases.hpp"
#include "record/json.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kCaseThread = 1;
constexpr int kLaunchThread = 2;

// The events of one trace, one JSON object a line.
class Events {
 public:
  // Times of all rows count from `origin_unix_us`, so that the trace begins at 0.
  explicit Events(std::int64_t origin_unix_us) : origin_unix_us_(origin_unix_us) {}

  void name_process(int pid, const std::string& name) {
    add({{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", name}}}});
    name_thread(pid, kCaseThread, "cases and their phases");
    name_thread(pid, kLaunchThread, "timed launches");
  }

  void add_row(int pid, const Row& row) {
    const Trace& trace = *row.trace;
    const double start = static_cast<double>(trace.start_unix_us - origin_unix_us_);
    const double end = trace.phases.empty() ? 0 : trace.phases.back().end_us;
    const std::string name = printable(row.case_id, std::string_view::npos);
    Json about = {{"status", to_string(row.status)}, {"round", row.round}};
    if (row.time_us) about["time_us"] = row.time_us->median;
    if (!row.reason.empty()) about["reason"] = printable(row.reason);
    add_slice(pid, kCaseThread, name, "case", start, end, about);
    for (const TracePhase& phase : trace.phases) {
      add_slice(pid, kCaseThread, printable(phase.name), "phase", start + phase.start_us,
                phase.end_us - phase.start_us, Json::object());
    }
    for (std::size_t i = 0; i < trace.sample_start_us.size(); ++i) {
      const double at = start + trace.sample_start_us[i];
      Json sample = {{"sample", i}};
      const bool has_clock = row.clock_mhz && i < row.clock_mhz->samples.size();
      if (has_clock) sample["sm_clock_mhz"] = row.clock_mhz->samples[i];
      add_slice(pid, kLaunchThread, name, "launch", at, row.time_us->samples[i], sample);
      if (has_clock) add_counter(pid, "SM clock", "MHz", at, row.clock_mhz->samples[i]);
    }
    for (const TracePoint& point : trace.power_w) {
      add_counter(pid, "power", "W", start + point.at_us, point.value);
    }
  }

  std::string take() { return std::move(text_); }

 private:
  void name_thread(int pid, int tid, const char* name) {
    add({{"ph", "M"},
         {"name", "thread_name"},
         {"pid", pid},
         {"tid", tid},
         {"args", {{"name", name}}}});
  }
  void add_slice(int pid, int tid, const std::string& name, const char* category, double start_us,
                 double duration_us, const Json& args) {
    add({{"ph", "X"},
         {"name", name},
         {"cat", category},
         {"pid", pid},
         {"tid", tid},
         {"ts", start_us},
         {"dur", duration_us},
         {"args", args}});
  }
  void add_counter(int pid, const char* name, const char* unit, double at_us, double value) {
    add({{"ph", "C"},
         {"name", name},
         {"pid", pid},
         {"tid", kLaunchThread},
         {"ts", at_us},
         {"args", {{unit, value}}}});
  }
  void add(const Json& event) {
    if (!text_.empty()) text_ += ",\n";
    text_ += dump_line(event);
  }

  std::int64_t origin_unix_us_;
  std::string text_;
};

}  // namespace

Export export_chrome_trace(std::span<const NamedRecord> inputs) {
  constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();
  std::int64_t origin = kNone;
  Export out;
  for (const NamedRecord& input : inputs) {
    std::int64_t without = 0;
    for (const Row& row : input.record.rows) {
      if (row.trace) {
        origin = std::min(origin, row.trace->start_unix_us);
      } else {
        ++without;
      }
    }
    if (without > 0) {
      out.left_out.push_back(fmt::format("{} of the {} rows of {} do not tell when they ran",
                                         without, input.record.rows.size(), printable(input.name)));
    }
  }
  if (origin == kNone) {
    throw UsageError("no row tells when it ran",
                     "older versions did not record it, and reports leave it out: measure again");
  }
  Events events(origin);
  int pid = 0;
  for (const NamedRecord& input : inputs) {
    for (const DeviceInfo& device : input.record.environment.devices) {
      ++pid;
      const std::string record = inputs.size() > 1 ? " of " + input.name : "";
      events.name_process(pid, printable(fmt::format("{} {}{}", device.device, device.name, record),
                                         std::string_view::npos));
      for (const Row& row : input.record.rows) {
        if (row.trace && row.device == device.device) events.add_row(pid, row);
      }
    }
  }
  out.text = fmt::format(
      "{{\"displayTimeUnit\":\"ms\",\"otherData\":{{\"start_unix_us\":\"{}\"}},\"traceEvents\":[\n"
      "{}\n]}}\n",
      origin, events.take());
  return out;
}

}  // namespace rooflash
