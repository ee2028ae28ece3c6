// JUnit XML, the form in which CI systems take the results of tests. What the tests are is the
// caller's: a row of a record, a verdict of a gate.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rooflash {

struct JunitCase {
  enum class Result { passed, failed, errored, skipped };

  std::string classname;
  std::string name;
  std::optional<double> time_s;
  Result result = Result::passed;
  std::string type;     // of a failure or an error: "slower", "crashed"
  std::string message;  // one line; of a failure, an error or a skip
  std::string text;     // more of it, several lines; of a passed case its output
};

struct JunitSuite {
  std::string name;
  std::vector<JunitCase> cases;
};

// One document, well-formed whatever the texts hold: markup is escaped, and what XML cannot hold or
// is unsafe to show becomes U+FFFD. No time stamps: the same suites give the same bytes.
std::string render_junit(std::string_view name, std::span<const JunitSuite> suites);

}  // namespace rooflash
