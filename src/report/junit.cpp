#include "report/junit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "report/escape.hpp"

namespace rooflash {
namespace {

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

std::string xml_text(std::string_view text) {
  std::string out = escape_html(text);
  // The two code points that UTF-8 can write and XML cannot hold.
  replace_all(out, "\xEF\xBF\xBE", "\xEF\xBF\xBD");
  replace_all(out, "\xEF\xBF\xBF", "\xEF\xBF\xBD");
  return out;
}

// A parser turns line ends and tabs of an attribute into spaces unless they are written as numbers.
std::string xml_attribute(std::string_view text) {
  std::string out = xml_text(text);
  replace_all(out, "\n", "&#10;");
  replace_all(out, "\t", "&#9;");
  return out;
}

struct Totals {
  std::ptrdiff_t tests = 0;
  std::ptrdiff_t failures = 0;
  std::ptrdiff_t errors = 0;
  std::ptrdiff_t skipped = 0;
};

Totals totals_of(const JunitSuite& suite) {
  const auto with = [&](JunitCase::Result result) {
    return std::count_if(suite.cases.begin(), suite.cases.end(),
                         [&](const JunitCase& one) { return one.result == result; });
  };
  return {std::ssize(suite.cases), with(JunitCase::Result::failed),
          with(JunitCase::Result::errored), with(JunitCase::Result::skipped)};
}

std::string attributes(std::string_view name, const Totals& totals) {
  return fmt::format(R"(name="{}" tests="{}" failures="{}" errors="{}" skipped="{}")",
                     xml_attribute(name), totals.tests, totals.failures, totals.errors,
                     totals.skipped);
}

std::string outcome(const JunitCase& one) {
  const std::string message = xml_attribute(one.message);
  const std::string text = xml_text(one.text);
  switch (one.result) {
    case JunitCase::Result::passed:
      return text.empty() ? "" : fmt::format("<system-out>{}</system-out>", text);
    case JunitCase::Result::failed:
      return fmt::format(R"(<failure type="{}" message="{}">{}</failure>)", xml_attribute(one.type),
                         message, text);
    case JunitCase::Result::errored:
      return fmt::format(R"(<error type="{}" message="{}">{}</error>)", xml_attribute(one.type),
                         message, text);
    case JunitCase::Result::skipped:
      return fmt::format(R"(<skipped message="{}"/>)", message);
  }
  return {};
}

std::string case_element(const JunitCase& one) {
  const std::string time = one.time_s ? fmt::format(R"( time="{:.9f}")", *one.time_s) : "";
  const std::string head = fmt::format(R"(    <testcase classname="{}" name="{}"{})",
                                       xml_attribute(one.classname), xml_attribute(one.name), time);
  const std::string body = outcome(one);
  return body.empty() ? head + "/>\n" : head + ">" + body + "</testcase>\n";
}

}  // namespace

std::string render_junit(std::string_view name, std::span<const JunitSuite> suites) {
  Totals all;
  std::string body;
  for (const JunitSuite& suite : suites) {
    const Totals totals = totals_of(suite);
    all.tests += totals.tests;
    all.failures += totals.failures;
    all.errors += totals.errors;
    all.skipped += totals.skipped;
    body += fmt::format("  <testsuite {}>\n", attributes(suite.name, totals));
    for (const JunitCase& one : suite.cases) body += case_element(one);
    body += "  </testsuite>\n";
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n{}</testsuites>\n",
      attributes(name, all), body);
}

}  // namespace rooflash
