#include "report/junit.hpp"

#include <gtest/gtest.h>

namespace rooflash {
namespace {

using Result = JunitCase::Result;

TEST(Junit, CountsAndOutcomesOfEverySuite) {
  const JunitSuite suites[] = {
      {"quickstart on NVIDIA H200",
       {{"quickstart.fa2", "passes", 0.001, Result::passed, "", "", "unsure: more rounds"},
        {"quickstart.fa2", "quiet", {}, Result::passed, "", "", ""},
        {"quickstart.fa2", "fails", 0.002, Result::failed, "slower", "+6.2%", "base 1\nnew 2"},
        {"quickstart.fa3", "crashes", {}, Result::errored, "crashed", "SIGSEGV", ""},
        {"quickstart.fa3", "cannot", {}, Result::skipped, "", "needs sm_90", ""}}},
      {"empty", {}}};
  EXPECT_EQ(render_junit("rooflash", suites),
            R"(<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="rooflash" tests="5" failures="1" errors="1" skipped="1">
  <testsuite name="quickstart on NVIDIA H200" tests="5" failures="1" errors="1" skipped="1">
    <testcase classname="quickstart.fa2" name="passes" time="0.001000000"><system-out>unsure: more rounds</system-out></testcase>
    <testcase classname="quickstart.fa2" name="quiet"/>
    <testcase classname="quickstart.fa2" name="fails" time="0.002000000"><failure type="slower" message="+6.2%">base 1
new 2</failure></testcase>
    <testcase classname="quickstart.fa3" name="crashes"><error type="crashed" message="SIGSEGV"></error></testcase>
    <testcase classname="quickstart.fa3" name="cannot"><skipped message="needs sm_90"/></testcase>
  </testsuite>
  <testsuite name="empty" tests="0" failures="0" errors="0" skipped="0">
  </testsuite>
</testsuites>
)");
}

TEST(Junit, HostileTextStaysText) {
  const JunitSuite suites[] = {{"<a>&\"'",
                                {{"]]>",
                                  "line\nend\ttab",
                                  {},
                                  Result::failed,
                                  "\x01",
                                  "\xEF\xBF\xBF\xFF",
                                  "</failure><x/>"}}}};
  EXPECT_EQ(
      render_junit("n", suites),
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"n\" tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\">\n"
      "  <testsuite name=\"&lt;a&gt;&amp;&quot;&#39;\" tests=\"1\" failures=\"1\" errors=\"0\" "
      "skipped=\"0\">\n"
      "    <testcase classname=\"]]&gt;\" name=\"line&#10;end&#9;tab\"><failure "
      "type=\"\xEF\xBF\xBD\" message=\"\xEF\xBF\xBD\xEF\xBF\xBD\">"
      "&lt;/failure&gt;&lt;x/&gt;</failure></testcase>\n"
      "  </testsuite>\n"
      "</testsuites>\n");
}

}  // namespace
}  // namespace rooflash
