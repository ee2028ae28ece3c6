// The rows of records as tests.
#include "report/junit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "core/units.hpp"
#include "export/cases.hpp"
#include "gate/match.hpp"

namespace rooflash {
namespace {

// A case that does not fit and one that is not served are answers, not faults.
JunitCase::Result result_of(const Row& row) {
  switch (row.status) {
    case Status::ok:
      return is_implausible(row) ? JunitCase::Result::failed : JunitCase::Result::passed;
    case Status::wrong:
      return JunitCase::Result::failed;
    case Status::oom:
      return row.memory.needed_bytes.value_or(0) > row.memory.free_bytes.value_or(0)
                 ? JunitCase::Result::skipped
                 : JunitCase::Result::errored;
    case Status::unsupported:
      return JunitCase::Result::skipped;
    case Status::failed:
    case Status::crashed:
    case Status::timeout:
    case Status::not_run:
      return JunitCase::Result::errored;
  }
  return JunitCase::Result::errored;
}

std::string figures(const Row& row) {
  std::string text = fmt::format("verification: {}\n", row.verify.status);
  if (row.time_us) {
    text += fmt::format("time_us: {} (95 % {} to {}, n {})\n", row.time_us->median,
                        row.time_us->ci95_low, row.time_us->ci95_high, row.time_us->n);
  }
  if (row.derived.tflops) text += fmt::format("tflops: {}\n", *row.derived.tflops);
  if (row.counters.hbm_read_bytes && row.counters.hbm_write_bytes) {
    text += fmt::format("hbm_bytes: {}\n",
                        *row.counters.hbm_read_bytes + *row.counters.hbm_write_bytes);
  }
  if (!row.flags.empty()) text += fmt::format("flags: {}\n", fmt::join(row.flags, " "));
  return text + fmt::format("reproduce: {}", row.repro);
}

JunitCase test_of(const Record& record, const Row& row) {
  JunitCase test;
  test.classname = record.suite + "." + row.kernel;
  test.name = row.case_id;
  if (row.round > 0) test.name += fmt::format(" round {}", row.round);
  if (has_usable_time(row)) test.time_s = row.time_us->median * 1e-6;
  test.result = result_of(row);
  const bool implausible = row.status == Status::ok && is_implausible(row);
  test.type = implausible ? "implausible" : to_string(row.status);
  test.message = implausible ? "faster than the hardware can be" : row.reason;
  test.text = figures(row);
  return test;
}

}  // namespace

Export export_junit(std::span<const NamedRecord> inputs) {
  std::vector<JunitSuite> suites;
  for (const NamedRecord& input : inputs) {
    // By index too: two cards of one model hold the same cases.
    std::map<std::string, JunitSuite> by_device;
    for (const Row& row : input.record.rows) {
      const std::string name = fmt::format("{} on {} ({})", input.record.suite,
                                           device_class(input.record, row), row.device);
      JunitSuite& suite = by_device[name];
      suite.name = inputs.size() > 1 ? input.name + ": " + name : name;
      suite.cases.push_back(test_of(input.record, row));
    }
    for (auto& [name, suite] : by_device) suites.push_back(std::move(suite));
  }
  return {render_junit("rooflash", suites), {}};
}

}  // namespace rooflash
