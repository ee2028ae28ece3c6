// When the phases of a case began and ended, as its row tells.
#include "worker/loop/trace_log.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "record/json.hpp"
#include "worker/backend.hpp"

namespace rooflash {
namespace {

Row timed_row() {
  Row row;
  row.status = Status::ok;
  row.time_us = TimeUs{2, 2, 2, 2, 2, {2, 2}, "cold", "burst", "event", "ci"};
  return row;
}

TEST(TraceLog, TimesCountFromTheStartOfTheCase) {
  const double before = steady_us();
  TraceLog log;
  log.begin("setup");
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  log.begin("timed");
  const double sample = steady_us();
  Row row = timed_row();
  row.trace.emplace();
  row.trace->sample_start_us = {sample, sample + 3};
  row.trace->power_w = {{sample + 1, 300}};
  log.finish(row);
  const double elapsed = steady_us() - before;

  ASSERT_TRUE(row.trace);
  const std::vector<TracePhase>& phases = row.trace->phases;
  ASSERT_EQ(phases.size(), 2U);
  EXPECT_EQ(phases[0].name, "setup");
  EXPECT_GE(phases[0].start_us, 0);
  EXPECT_GE(phases[0].end_us - phases[0].start_us, 5000);
  EXPECT_EQ(phases[1].start_us, phases[0].end_us);
  EXPECT_LE(phases[1].end_us, elapsed);
  const std::vector<double>& starts = row.trace->sample_start_us;
  ASSERT_EQ(starts.size(), 2U);
  EXPECT_GE(starts[0], phases[1].start_us);
  EXPECT_NEAR(starts[1] - starts[0], 3, 0.11);
  EXPECT_NEAR(row.trace->power_w[0].at_us - starts[0], 1, 0.11);
  // 2026 to 2100
  EXPECT_GT(row.trace->start_unix_us, 1'767'225'600'000'000);
  EXPECT_LT(row.trace->start_unix_us, 4'102'444'800'000'000);
}

TEST(TraceLog, ARowWithoutTimesHasNoSamples) {
  TraceLog log;
  log.begin("timed");
  Row row = timed_row();
  row.trace.emplace().sample_start_us = {steady_us()};
  row.status = Status::wrong;
  row.time_us.reset();
  log.finish(row);
  ASSERT_TRUE(row.trace);
  EXPECT_EQ(row.trace->phases.size(), 1U);
  EXPECT_TRUE(row.trace->sample_start_us.empty());
}

TEST(TraceLog, SimulatedRowsCanBeMadeTheSameEachTime) {
  setenv("SOURCE_DATE_EPOCH", "0", 1);
  Row simulated = timed_row();
  simulated.simulated = true;
  TraceLog().finish(simulated);
  Row measured = timed_row();
  TraceLog().finish(measured);
  unsetenv("SOURCE_DATE_EPOCH");
  EXPECT_FALSE(simulated.trace);
  EXPECT_TRUE(measured.trace);
  TraceLog().finish(simulated);
  EXPECT_TRUE(simulated.trace);
}

}  // namespace
}  // namespace rooflash
