#include "report/plot.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "core/utf8.hpp"
#include "fixture.hpp"

namespace rooflash {
namespace {

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::size_t characters(std::string_view line) {
  std::size_t n = 0;
  for (; !line.empty(); ++n) line.remove_prefix(first_utf8(line).length);
  return n;
}

TEST(Plot, DrawsEveryDtypeOfADeviceWithItsRoofAndKernels) {
  const std::string text = render_plot(fixture::sweep_record(true), {});
  EXPECT_TRUE(contains(text, "roofline bf16 on Fixture GPU (made-up numbers) [cuda:0]\n"));
  EXPECT_TRUE(contains(text, "roofline fp16 on Fixture GPU (made-up numbers) [cuda:0]\n"));
  EXPECT_TRUE(contains(text, "[sim:fixture]  SIMULATED\n"));
  EXPECT_TRUE(contains(text, "roof: HBM 4284 GB/s, 780 TFLOPS (measured), ridge 182 FLOP/byte"));
  EXPECT_TRUE(contains(text, "a fa2 (24 rows)"));
  EXPECT_TRUE(contains(text, "b naive (22 rows)"));
  EXPECT_TRUE(contains(text, "FLOP per HBM byte"));
}

TEST(Plot, KeepsToTheWidthAndToAsciiWhenAsked) {
  const Record record = fixture::sweep_record(true);
  for (const int width : {40, 100, 300}) {
    std::istringstream lines(render_plot(record, {.width = width}));
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("roofline") && !line.starts_with("  roof:")) {
        EXPECT_LE(characters(line), static_cast<std::size_t>(width)) << line;
      }
    }
  }
  const std::string plain = render_plot(record, {.ascii = true});
  EXPECT_TRUE(std::all_of(plain.begin(), plain.end(),
                          [](char c) { return c == '\n' || (c >= ' ' && c <= '~'); }));
  EXPECT_TRUE(contains(plain, "----------"));
  EXPECT_TRUE(contains(render_plot(record, {.color = true}), "\x1b[1;31ma\x1b[0m"));
  EXPECT_EQ(plain, render_plot(record, {.ascii = true}));
}

TEST(Plot, TheFrameIsThatOfTheRoofsAndGrowsForPointsFarOut) {
  const RoofFrame frame = roof_frame(4800, 989);
  EXPECT_DOUBLE_EQ(frame.x_low, 0.5);
  EXPECT_DOUBLE_EQ(frame.x_high, 5e4);
  EXPECT_DOUBLE_EQ(frame.y_low, 0.5);
  EXPECT_DOUBLE_EQ(frame.y_high, 5e3);
  Record record = fixture::empty_record();
  Problem decode = fixture::problem(DType::bf16, 128, 8192, false);
  decode.seqlen_q = 1;
  record.rows = {fixture::row("fa2", decode, 0.001, 90, false)};
  const std::string text = render_plot(record, {.ascii = true});
  EXPECT_TRUE(contains(text, "0.001 |"));
  std::istringstream lines(text);
  int marks = 0;
  for (std::string line; std::getline(lines, line);) {
    if (contains(line, "|")) marks += static_cast<int>(std::count(line.begin(), line.end(), 'a'));
  }
  EXPECT_EQ(marks, 1);
}

TEST(Plot, SaysWhatItCannotDraw) {
  Record record = fixture::empty_record();
  EXPECT_EQ(render_plot(record, {}), "no timed rows to plot\n");
  record.rows = {
      fixture::row("fa2", fixture::problem(DType::bf16, 128, 1024, false), 300, 1, false)};
  record.rows[0].counters = {};
  record.rows[0].derived.intensity_flop_per_byte.reset();
  EXPECT_TRUE(contains(render_plot(record, {}), "without HBM bytes, and so not drawn: 1 row"));
  record.ceilings.clear();
  record.datasheet.clear();
  EXPECT_TRUE(contains(render_plot(record, {}), "no roofs in this record"));
  record = fixture::hostile_record();
  const std::string hostile = render_plot(record, {});
  EXPECT_FALSE(contains(hostile, "\x1b"));
  EXPECT_FALSE(contains(hostile, "\xE2\x80\xAE"));
}

}  // namespace
}  // namespace rooflash
