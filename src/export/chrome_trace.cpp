// Chrome's Trace Event Format, JSON object form, which Perfetto and chrome://tracing read.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
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

// Viewers keep whole nanoseconds. Ends are rounded, not durations, so that slices that touch still
// touch and do not overlap.
std::int64_t nanoseconds(double us) {
  return std::llround(us * 1e3);
}

double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

// The events of one trace, one JSON object a line: names first, then by time, and what holds
// another slice before it.
class Events {
 public:
  // Times of all rows count from `origin_unix_us`, so that the trace begins at 0.
  explicit Events(std::int64_t origin_unix_us) : origin_unix_us_(origin_unix_us) {}

  void name_process(int pid, const std::string& name) {
    names_.push_back(dump_line(
        Json{{"ph", "M"}, {"name", "process_name"}, {"pid", pid}, {"args", {{"name", name}}}}));
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
    add_slice(pid, kCaseThread, name, "case", start, start + end, about);
    for (const TracePhase& phase : trace.phases) {
      add_slice(pid, kCaseThread, printable(phase.name), "phase", start + phase.start_us,
                start + phase.end_us, Json::object());
    }
    for (std::size_t i = 0; i < trace.sample_start_us.size(); ++i) {
      const double at = start + trace.sample_start_us[i];
      Json sample = {{"sample", i}};
      const bool has_clock = row.clock_mhz && i < row.clock_mhz->samples.size();
      if (has_clock) sample["sm_clock_mhz"] = row.clock_mhz->samples[i];
      add_slice(pid, kLaunchThread, name, "launch", at, at + row.time_us->samples[i], sample);
      if (has_clock) add_counter(pid, "SM clock", "MHz", at, row.clock_mhz->samples[i]);
    }
    for (const TracePoint& point : trace.power_w) {
      add_counter(pid, "power", "W", start + point.at_us, point.value);
    }
  }

  std::string text() {
    std::stable_sort(timed_.begin(), timed_.end(), [](const Timed& a, const Timed& b) {
      return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.duration_ns > b.duration_ns;
    });
    std::string text;
    const auto append = [&](const std::string& event) {
      if (!text.empty()) text += ",\n";
      text += event;
    };
    for (const std::string& name : names_) append(name);
    for (const Timed& event : timed_) append(event.text);
    return text;
  }

 private:
  struct Timed {
    std::int64_t at_ns;
    std::int64_t duration_ns;
    std::string text;
  };

  void name_thread(int pid, int tid, const char* name) {
    names_.push_back(dump_line(Json{{"ph", "M"},
                                    {"name", "thread_name"},
                                    {"pid", pid},
                                    {"tid", tid},
                                    {"args", {{"name", name}}}}));
  }
  void add_slice(int pid, int tid, const std::string& name, const char* category, double start_us,
                 double end_us, const Json& args) {
    const std::int64_t at_ns = nanoseconds(start_us);
    const std::int64_t duration_ns = nanoseconds(end_us) - at_ns;
    add(at_ns, duration_ns,
        {{"ph", "X"},
         {"name", name},
         {"cat", category},
         {"pid", pid},
         {"tid", tid},
         {"ts", microseconds(at_ns)},
         {"dur", microseconds(duration_ns)},
         {"args", args}});
  }
  void add_counter(int pid, const char* name, const char* unit, double at_us, double value) {
    add(nanoseconds(at_us), 0,
        {{"ph", "C"},
         {"name", name},
         {"pid", pid},
         {"tid", kLaunchThread},
         {"ts", microseconds(nanoseconds(at_us))},
         {"args", {{unit, value}}}});
  }
  void add(std::int64_t at_ns, std::int64_t duration_ns, const Json& event) {
    timed_.push_back({at_ns, duration_ns, dump_line(event)});
  }

  std::int64_t origin_unix_us_;
  std::vector<std::string> names_;
  std::vector<Timed> timed_;
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
      origin, events.text());
  return out;
}

}  // namespace rooflash
