#include "core/units.hpp"

#include <gtest/gtest.h>

#include <clocale>

#include "core/error.hpp"

namespace rooflash {
namespace {

// The message and hint of the UsageError that `parse` throws.
template <class Parse>
std::string usage_error(Parse parse) {
  try {
    parse();
  } catch (const UsageError& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "no error";
}

TEST(ParseCount, TakesDigitsAndBinarySuffixes) {
  EXPECT_EQ(parse_count("512", "--x"), 512);
  EXPECT_EQ(parse_count("4k", "--x"), 4096);
  EXPECT_EQ(parse_count("4K", "--x"), 4096);
  EXPECT_EQ(parse_count("2m", "--x"), 2097152);
  EXPECT_EQ(parse_count("9007199254740992", "--x"), std::int64_t{1} << 53);
}

TEST(ParseCount, NamesFlagValueAndReason) {
  const auto error = [](std::string_view text) {
    return usage_error([&] { parse_count(text, "--seqlen"); });
  };
  EXPECT_EQ(error("0"),
            "--seqlen: '0' is not positive | write a positive whole number, such as 512, 4k (4096) "
            "or 1m");
  EXPECT_NE(error("-4").find("'-4' is not positive"), std::string::npos);
  EXPECT_NE(error("").find("'' is not a number"), std::string::npos);
  EXPECT_NE(error("k").find("is not a number"), std::string::npos);
  EXPECT_NE(error("1.5k").find("is not a whole number"), std::string::npos);
  EXPECT_NE(error("4kk").find("is not a whole number"), std::string::npos);
  EXPECT_NE(error("4 k").find("is not a whole number"), std::string::npos);
  EXPECT_NE(error(" 4").find("is not a number"), std::string::npos);
  EXPECT_NE(error("+4").find("is not a number"), std::string::npos);
  EXPECT_NE(error("9007199254740993").find("is too large"), std::string::npos);
  EXPECT_NE(error("9223372036854775807k").find("is too large"), std::string::npos);
  EXPECT_NE(error("99999999999999999999").find("is too large"), std::string::npos);
  EXPECT_NE(error("a\x1b[2J").find("'a\\x1b[2J'"), std::string::npos);
}

TEST(ParseBytes, UnitsAreBinary) {
  EXPECT_EQ(parse_bytes("65536", "--sram"), 65536);
  EXPECT_EQ(parse_bytes("64k", "--sram"), 65536);
  EXPECT_EQ(parse_bytes("227KiB", "--sram"), 232448);
  EXPECT_EQ(parse_bytes("227kb", "--sram"), 232448);
  EXPECT_EQ(parse_bytes("1.5g", "--sram"), 1610612736);
  EXPECT_EQ(parse_bytes("12B", "--sram"), 12);
  for (const char* text :
       {"", "k", "0", "0.2", "-1k", "nan", "inf", "1x", "1kx", "1e400", "9e9t"}) {
    EXPECT_THROW(parse_bytes(text, "--sram"), UsageError) << text;
  }
}

TEST(ParseSeconds, NeedsAUnit) {
  EXPECT_DOUBLE_EQ(parse_seconds("200ms", "--t"), 0.2);
  EXPECT_DOUBLE_EQ(parse_seconds("1.5s", "--t"), 1.5);
  EXPECT_DOUBLE_EQ(parse_seconds("50us", "--t"), 50e-6);
  EXPECT_EQ(usage_error([] { parse_seconds("200", "--max-time"); }),
            "--max-time: '200' has no unit | write a time with its unit, such as 200ms, 1.5s or "
            "50us");
  for (const char* text : {"", "ms", "-1s", "nan", "nans", "infs", "1h", "1 s", "1e3s"}) {
    EXPECT_THROW(parse_seconds(text, "--t"), UsageError) << text;
  }
}

TEST(ParseRepetitions, NeedsAnX) {
  EXPECT_EQ(parse_repetitions("50x", "--n"), 50);
  for (const char* text : {"50", "x", "0x", "-3x", "5.5x", "5kx", "99999999999999999999x", ""}) {
    EXPECT_THROW(parse_repetitions(text, "--n"), UsageError) << text;
  }
}

TEST(ParsePercent, NeedsAPercentSign) {
  EXPECT_DOUBLE_EQ(parse_percent("0.5%", "--p"), 0.005);
  EXPECT_DOUBLE_EQ(parse_percent("3%", "--p"), 0.03);
  EXPECT_DOUBLE_EQ(parse_percent("0%", "--p"), 0.0);
  for (const char* text : {"0.5", "%", "-1%", "nan%", "inf%", "1%%", "1 %", ""}) {
    EXPECT_THROW(parse_percent(text, "--p"), UsageError) << text;
  }
}

TEST(Format, CountsRoundTrip) {
  EXPECT_EQ(format_count(16384), "16k");
  EXPECT_EQ(format_count(4250), "4250");
  EXPECT_EQ(format_count(2097152), "2m");
  EXPECT_EQ(format_count(0), "0");
  for (const std::int64_t value : {1, 512, 1023, 1024, 4096, 5000, 1048576, 3145728}) {
    EXPECT_EQ(parse_count(format_count(value), "--x"), value);
  }
}

TEST(Format, SizesTimesAndRates) {
  EXPECT_EQ(format_gib(268435456), "256 MiB");
  EXPECT_EQ(format_gib(8589934592), "8.0 GiB");
  EXPECT_EQ(format_gib(150754820096), "140.4 GiB");
  EXPECT_EQ(format_gib(1536), "1.5 KiB");
  EXPECT_EQ(format_gib(100), "100 B");
  EXPECT_EQ(format_gib(1024.0 * 1024 * 1024 - 1), "1.0 GiB");
  EXPECT_EQ(format_time_us(61.2), "61.2 us");
  EXPECT_EQ(format_time_us(1151), "1.15 ms");
  EXPECT_EQ(format_time_us(999.7), "1.00 ms");
  EXPECT_EQ(format_time_us(2.5e6), "2.50 s");
  EXPECT_EQ(format_rate(611.4, "TFLOPS"), "611 TFLOPS");
  EXPECT_EQ(format_rate(9.996, "GB/s"), "10.0 GB/s");
}

TEST(Format, IgnoresTheLocale) {
  if (std::setlocale(LC_ALL, "de_DE.UTF-8") == nullptr) std::setlocale(LC_ALL, "");
  EXPECT_EQ(format_time_us(1.25), "1.25 us");
  EXPECT_DOUBLE_EQ(parse_seconds("1.5s", "--t"), 1.5);
  std::setlocale(LC_ALL, "C");
}

TEST(Printable, EscapesWhatCouldMoveTheCursorOrHideText) {
  EXPECT_EQ(printable("plain text"), "plain text");
  EXPECT_EQ(printable(std::string_view("\x1b[31m\n\t\x7f\0z", 9)), "\\x1b[31m\\x0a\\x09\\x7f\\x00");
  EXPECT_EQ(printable("\xc3\xa9"), "\xc3\xa9");             // e acute stays
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");           // C1 control sequence
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");  // right-to-left override
  // Marks that nobody sees: zero width, direction, word joiner, isolate, byte order mark.
  for (const std::string mark : {"\xd8\x9c", "\xe2\x80\x8b", "\xe2\x80\x8f", "\xe2\x81\xa0",
                                 "\xe2\x81\xa4", "\xe2\x81\xa6", "\xef\xbb\xbf"}) {
    EXPECT_EQ(printable(mark).find(mark), std::string::npos) << printable(mark);
  }
  EXPECT_EQ(printable("\xe2\x82\xac\xf0\x9f\x98\x80"), "\xe2\x82\xac\xf0\x9f\x98\x80");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");           // malformed and cut off
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
}

TEST(Printable, CutsLongTextBetweenCharacters) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdefg", 6), "abcdef...");
  EXPECT_EQ(printable("a\xc3\xa9\xc3\xa9", 2), "a\xc3\xa9...");
  EXPECT_EQ(printable("ab\n", 4), "ab...");  // an escape is not cut in half
}

}  // namespace
}  // namespace rooflash
