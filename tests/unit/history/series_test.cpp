// Which rows stand in one series, and what a point of it is.
#include "history/series.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace rooflash {
namespace {

Row row(double time_us, int round = 0) {
  Row row;
  row.kernel = "fa2";
  row.case_id = case_id(row.kernel, row.problem);
  row.definition_hash = "0123456789abcdef";
  row.device = "cuda:0";
  row.gpu = "NVIDIA H200";
  row.round = round;
  row.status = Status::ok;
  row.model.convention = "exact-pairs-v1";
  row.model.flops = 2e9;
  row.time_us = TimeUs{time_us,   time_us - 1, time_us + 2, time_us, 1,
                       {time_us}, "cold",      "burst",     "event", "ci"};
  return row;
}

Record record(const std::string& date, std::vector<Row> rows) {
  Record record;
  record.environment.date = date;
  record.tool.commit = "c" + date.substr(8, 2);
  DeviceInfo device;
  device.device = "cuda:0";
  device.name = "NVIDIA H200";
  device.sm_count = 132;
  record.environment.devices = {device};
  record.rows = std::move(rows);
  return record;
}

TEST(Series, PointsAreOrderedByDate) {
  SeriesBuilder builder;
  builder.add(record("2026-03-02T00:00:00Z", {row(12)}), "b.json");
  builder.add(record("2026-03-01T00:00:00Z", {row(10)}), "a.json");
  const std::vector<Series> all = builder.take();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].key.device_class, "NVIDIA H200, 132 SMs");
  ASSERT_EQ(all[0].points.size(), 2U);
  EXPECT_EQ(all[0].points[0].record, "a.json");
  EXPECT_EQ(all[0].points[0].commit, "c01");
  EXPECT_EQ(all[0].points[0].time_us, 10);
  EXPECT_EQ(all[0].points[0].ci95.low, 9);
  EXPECT_EQ(all[0].points[0].ci95.high, 12);
  EXPECT_DOUBLE_EQ(all[0].points[0].tflops.value(), 200);
  EXPECT_EQ(all[0].points[1].time_us, 12);
  EXPECT_TRUE(builder.take().empty());
}

TEST(Series, RoundsAreOnePoint) {
  SeriesBuilder builder;
  builder.add(record("2026-03-01T00:00:00Z", {row(10, 0), row(14, 1), row(11, 2)}), "a.json");
  const std::vector<Series> all = builder.take();
  ASSERT_EQ(all.size(), 1U);
  const SeriesPoint& point = all[0].points.at(0);
  EXPECT_EQ(point.time_us, 11);
  EXPECT_EQ(point.rows, 3);
  EXPECT_EQ(point.ci95.low, 10);  // fewer than six rounds: their range
  EXPECT_EQ(point.ci95.high, 14);
}

TEST(Series, OtherGpuDefinitionConventionOrWayOfMeasuringStandApart) {
  SeriesBuilder builder;
  const std::string date = "2026-03-01T00:00:00Z";
  builder.add(record(date, {row(10)}), "a");
  Row other = row(10);
  other.definition_hash = "fedcba9876543210";
  builder.add(record(date, {other}), "b");
  other = row(10);
  other.model.convention = "other";
  builder.add(record(date, {other}), "c");
  other = row(10);
  other.time_us->l2 = "warm";
  builder.add(record(date, {other}), "d");
  other = row(10);
  other.time_us->power = "sustained";
  builder.add(record(date, {other}), "e");
  other = row(10);
  other.gpu = "NVIDIA H100";
  builder.add(record(date, {other}), "f");
  Record slice = record(date, {row(10)});
  slice.environment.devices[0].mig = true;
  builder.add(slice, "g");
  EXPECT_EQ(builder.take().size(), 7U);
}

TEST(Series, OnlyUsableTimesGivePoints) {
  Row wrong = row(10);
  wrong.status = Status::wrong;
  wrong.time_us.reset();
  Row implausible = row(10, 1);
  implausible.flags = {"implausible"};
  Row untimed = row(10, 2);
  untimed.time_us.reset();
  SeriesBuilder builder;
  builder.add(record("2026-03-01T00:00:00Z", {wrong, implausible, untimed}), "a");
  EXPECT_TRUE(builder.take().empty());
}

Row quantized_row(double time_us, double quantize_us, int round = 0) {
  Row one = row(time_us, round);
  one.kernel = "fp8";
  one.problem.dtype = DType::e4m3;
  one.case_id = case_id(one.kernel, one.problem);
  one.counters.hbm_read_bytes = one.counters.hbm_write_bytes = 100;
  one.quantize_us = row(quantize_us).time_us;
  one.time_with_quantize_us = time_us + quantize_us;
  return one;
}

TEST(Series, QuantisingIsASeriesOfItsOwn) {
  SeriesBuilder builder;
  const std::string date = "2026-03-01T00:00:00Z";
  builder.add(record(date, {quantized_row(10, 40), quantized_row(12, 44, 1)}), "a");
  const std::vector<Series> all = builder.take();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].key.measure, Measure::time_us);
  EXPECT_EQ(all[0].points.at(0).time_us, 11);
  EXPECT_EQ(all[0].points.at(0).hbm_bytes, 200);
  EXPECT_EQ(all[1].key.measure, Measure::quantize_us);
  EXPECT_EQ(all[1].key.case_id, all[0].key.case_id);
  EXPECT_EQ(all[1].points.at(0).time_us, 42);
  EXPECT_EQ(all[1].points.at(0).ci95.high, 44);
  EXPECT_EQ(all[1].points.at(0).rows, 2);
  EXPECT_FALSE(all[1].points.at(0).hbm_bytes);  // those of the attention
}

TEST(Series, QuantisingOfImplausibleRowsGivesNoPoint) {
  Row implausible = quantized_row(10, 40);
  implausible.flags = {"implausible"};
  SeriesBuilder builder;
  builder.add(record("2026-03-01T00:00:00Z", {implausible}), "a");
  EXPECT_TRUE(builder.take().empty());
}

TEST(Series, ADateMustBeOne) {
  for (const char* date :
       {"", "yesterday", "2026-03-01", "2026-03-01T00:00:00+01:00", "2026-03-01T00:00:0\x01Z"}) {
    Record undated = record("2026-03-01T00:00:00Z", {row(10)});
    undated.environment.date = date;
    EXPECT_THROW(SeriesBuilder().add(undated, "a"), UsageError) << date;
  }
}

}  // namespace
}  // namespace rooflash
