#include "report/advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "fixture.hpp"

namespace rooflash {
namespace {

Row one_row(double tflops = 300, double reread = 1.0) {
  return fixture::row("fa2", fixture::problem(DType::bf16, 128, 4096, false), tflops, reread,
                      false);
}

// The findings on a record of `rows`, by title.
std::vector<Advice> found(std::vector<Row> rows, std::string_view title) {
  Record record = fixture::empty_record();
  record.environment.devices[0].sm_clock_max_mhz = 1980;
  record.environment.devices[0].power_limit_w = 700;
  for (Row& row : rows) {
    if (row.clock_mhz) row.clock_mhz->median = std::max(1900.0, *row.clock_mhz->median);
    record.rows.push_back(std::move(row));
  }
  std::vector<Advice> items = advice(record);
  std::erase_if(items, [&](const Advice& item) { return item.title != title; });
  return items;
}

TEST(Advice, NothingToSayOfAGoodRow) {
  Record record = fixture::empty_record();
  record.rows = {one_row(600)};
  record.rows[0].resources.waves = 8;
  EXPECT_TRUE(advice(record).empty()) << advice(record).front().title;
  record.rows = {};
  EXPECT_TRUE(advice(record).empty());
}

TEST(Advice, BoundsWhatReadingAgainCosts) {
  const char* const title = "moves bytes again that it already had";
  EXPECT_TRUE(found({one_row(300, 1.4)}, title).empty());
  const Row row = one_row(300, 3);
  const std::vector<Advice> items = found({row, one_row(300, 2)}, title);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(items[0].rows, 2);
  EXPECT_EQ(items[0].kind, Advice::Kind::optimise);
  const double extra = 2 * static_cast<double>(row.model.compulsory_bytes);
  EXPECT_NEAR(*items[0].gain_pct, 100 * extra / 4284e3 / row.time_us->median, 1e-6);
  EXPECT_NE(items[0].evidence.find("3.00x the compulsory"), std::string::npos) << items[0].evidence;
}

TEST(Advice, CountsUselessTensorWork) {
  Row row = one_row();
  row.counters.tensor_ops = 2 * row.model.flops;
  const std::vector<Advice> items = found({row}, "computes what the mask hides");
  ASSERT_EQ(items.size(), 1U);
  EXPECT_DOUBLE_EQ(*items[0].gain_pct, 50);
}

TEST(Advice, SeesTailsSpillsAndLaunches) {
  Row row = one_row();
  row.resources.waves = 1.25;
  const std::vector<Advice> tail = found({row}, "leaves SMs idle at the end");
  ASSERT_EQ(tail.size(), 1U);
  EXPECT_NEAR(*tail[0].gain_pct, 37.5, 1e-9);
  row.resources.waves = 0.5;
  EXPECT_EQ(found({row}, "leaves SMs idle at the end").size(), 1U);
  row.resources.waves = 7.95;
  EXPECT_TRUE(found({row}, "leaves SMs idle at the end").empty());
  row.resources.spill_bytes = 16;
  EXPECT_FALSE(found({row}, "spills registers").at(0).gain_pct);
  row.time_us->median = 9;
  EXPECT_EQ(found({row}, "is short enough to be bound by its launch").size(), 1U);
}

TEST(Advice, WarnsOfClocksAndRoofs) {
  Record record = fixture::empty_record();
  record.environment.devices[0].sm_clock_max_mhz = 1980;
  record.rows = {one_row()};
  record.rows[0].clock_mhz->median = 1700;
  record.rows[0].throttle = {"sw_power_cap"};
  record.rows[0].derived.roof_pct = 103;
  const std::vector<Advice> items = advice(record);
  const auto has = [&](std::string_view title, std::string_view evidence) {
    return std::any_of(items.begin(), items.end(), [&](const Advice& item) {
      return item.kind == Advice::Kind::warn && item.title == title &&
             item.evidence.find(evidence) != std::string::npos && !item.gain_pct;
    });
  };
  EXPECT_TRUE(
      has("ran at a lowered clock", "SM clock 1700 of at most 1980 MHz, 612 W, sw_power_cap"));
  EXPECT_TRUE(has("is above a measured roof", "103 % of the roof"));
}

TEST(Advice, SaysWhatIsKnownOfTimesFarFromTheModels) {
  const char* const title = "is far from the time that the model predicts";
  Row row = one_row();
  row.model.predicted_time_us = row.time_us->median / 1.2;
  EXPECT_TRUE(found({row}, title).empty());
  row.model.predicted_time_us = row.time_us->median / 2;
  row.model.predicted_hbm_bytes = *row.counters.hbm_read_bytes + *row.counters.hbm_write_bytes;
  row.counters.sm_l2_read_bytes = 3e9;
  row.counters.sm_l2_write_bytes = 1e9;
  row.model.predicted_sm_l2_bytes = 2e9;
  row.kernels_run = {"slow_gemm", std::string(5000, 'x')};
  const std::vector<Advice> items = found({row}, title);
  ASSERT_EQ(items.size(), 1U);
  for (const char* part : {"HBM bytes as predicted", "SM to L2 bytes 2.00 of the predicted",
                           "ran slow_gemm, xxx", "MHz"}) {
    EXPECT_NE(items[0].evidence.find(part), std::string::npos) << items[0].evidence;
  }
  EXPECT_LT(items[0].evidence.size(), 400U);
  row.simulated = true;
  EXPECT_TRUE(found({row}, title).empty());
}

TEST(Advice, HoldsFp8AgainstBf16) {
  const char* const title = "gains little from fp8";
  Row fp8 = fixture::row("fp8", fixture::problem(DType::e4m3, 128, 4096, false), 330, 1, false);
  EXPECT_EQ(found({one_row(300), fp8}, title).size(), 1U);
  EXPECT_EQ(found({one_row(270), fp8}, title).size(), 0U);
  EXPECT_EQ(found({fp8}, title).size(), 0U);
  fp8.problem.options["scale"] = "block";
  EXPECT_EQ(found({one_row(300), fp8}, title).size(), 1U);
}

TEST(Advice, LooksAtOkRowsAlone) {
  Row row = one_row(300, 9);
  row.status = Status::wrong;
  row.time_us.reset();
  EXPECT_TRUE(found({row}, "moves bytes again that it already had").empty());
}

}  // namespace
}  // namespace rooflash
