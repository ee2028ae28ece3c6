#include "core/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace rooflash {
namespace {

// Largest count that JSON readers, which hold numbers as doubles, keep exact.
constexpr std::int64_t kMaxCount = std::int64_t{1} << 53;

[[noreturn]] void fail(std::string_view flag, std::string_view text, std::string_view why,
                       std::string hint) {
  throw UsageError(fmt::format("{}: '{}' {}", flag, printable(text), why), std::move(hint));
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = lower(c);
  return result;
}

// A non-negative decimal number and what follows it, or nothing. No sign, no "inf", no "nan".
std::optional<std::pair<double, std::string_view>> leading_number(std::string_view text) {
  if (text.empty() || !(text[0] == '.' || (text[0] >= '0' && text[0] <= '9'))) return std::nullopt;
  double value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  if (error != std::errc{} || !std::isfinite(value)) return std::nullopt;
  return std::pair{value, text.substr(static_cast<std::size_t>(end - text.data()))};
}

// Three significant digits: 1.15, 61.2, 611.
std::string three_digits(double value) {
  const double size = std::fabs(value);
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  return size >= 9.995 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

}  // namespace

std::int64_t parse_count(std::string_view text, std::string_view flag) {
  const std::string hint = "write a positive whole number, such as 512, 4k (4096) or 1m";
  std::int64_t value = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, value);
  if (error == std::errc::result_out_of_range) fail(flag, text, "is too large", hint);
  if (error != std::errc{}) fail(flag, text, "is not a number", hint);
  const std::string suffix = lower(std::string_view(end, static_cast<std::size_t>(last - end)));
  std::int64_t unit = 1;
  if (suffix == "k") {
    unit = 1024;
  } else if (suffix == "m") {
    unit = std::int64_t{1024} * 1024;
  } else if (!suffix.empty()) {
    fail(flag, text, "is not a whole number", hint);
  }
  if (value <= 0) fail(flag, text, "is not positive", hint);
  if (value > kMaxCount / unit) fail(flag, text, "is too large", hint);
  return value * unit;
}

std::int64_t parse_bytes(std::string_view text, std::string_view flag) {
  const std::string hint = "write a size such as 64k, 227KiB, 1.5g (k, m and g are binary)";
  const auto number = leading_number(text);
  if (!number) fail(flag, text, "is not a size", hint);
  std::string suffix = lower(number->second);
  double unit = 1;
  if (!suffix.empty() && suffix != "b") {
    const std::size_t power = std::string_view("kmgt").find(suffix[0]);
    const std::string rest = suffix.substr(1);
    if (power == std::string_view::npos || (!rest.empty() && rest != "ib" && rest != "b")) {
      fail(flag, text, "has an unknown unit", hint);
    }
    unit = std::ldexp(1.0, 10 * (static_cast<int>(power) + 1));
  }
  const double bytes = number->first * unit;
  if (bytes < 1) fail(flag, text, "is less than one byte", hint);
  if (bytes > static_cast<double>(kMaxCount)) fail(flag, text, "is too large", hint);
  return static_cast<std::int64_t>(std::llround(bytes));
}

double parse_seconds(std::string_view text, std::string_view flag) {
  const std::string hint = "write a time with its unit, such as 200ms, 1.5s or 50us";
  const auto number = leading_number(text);
  if (!number) fail(flag, text, "is not a time", hint);
  const auto& [value, unit] = *number;
  if (unit == "s") return value;
  if (unit == "ms") return value * 1e-3;
  if (unit == "us") return value * 1e-6;
  if (unit.empty()) fail(flag, text, "has no unit", hint);
  fail(flag, text, "has an unknown unit", hint);
}

std::int64_t parse_repetitions(std::string_view text, std::string_view flag) {
  const std::string hint = "write a number of repetitions with an x, such as 50x";
  if (text.empty() || text.back() != 'x') fail(flag, text, "has no unit", hint);
  const std::string_view digits = text.substr(0, text.size() - 1);
  std::int64_t value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] = std::from_chars(digits.data(), last, value);
  if (error == std::errc::result_out_of_range) fail(flag, text, "is too large", hint);
  if (error != std::errc{} || end != last) fail(flag, text, "is not a whole number", hint);
  if (value <= 0) fail(flag, text, "is not positive", hint);
  return value;
}

double parse_percent(std::string_view text, std::string_view flag) {
  const std::string hint = "write a percentage, such as 0.5%";
  const auto number = leading_number(text);
  if (!number) fail(flag, text, "is not a percentage", hint);
  if (number->second.empty()) fail(flag, text, "has no unit", hint);
  if (number->second != "%") fail(flag, text, "is not a percentage", hint);
  return number->first / 100;
}

std::string format_count(std::int64_t value) {
  constexpr std::int64_t kMega = std::int64_t{1024} * 1024;
  if (value != 0 && value % kMega == 0) return fmt::format("{}m", value / kMega);
  if (value != 0 && value % 1024 == 0) return fmt::format("{}k", value / 1024);
  return fmt::format("{}", value);
}

std::string format_gib(double bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB"};
  std::size_t unit = 0;
  while (unit < kUnits.size() && bytes >= 1023.95) {
    bytes /= 1024;
    ++unit;
  }
  if (unit == kUnits.size()) return fmt::format("{:.1f} GiB", bytes);
  const int decimals = unit == 0 || bytes >= 9.95 || bytes == std::floor(bytes) ? 0 : 1;
  return fmt::format("{:.{}f} {}", bytes, decimals, kUnits[unit]);
}

std::string format_time_us(double time_us) {
  if (time_us < 999.5) return three_digits(time_us) + " us";
  if (time_us < 999.5e3) return three_digits(time_us / 1e3) + " ms";
  return three_digits(time_us / 1e6) + " s";
}

std::string format_rate(double value, std::string_view unit) {
  return fmt::format("{} {}", three_digits(value), unit);
}

std::string printable(std::string_view text, std::size_t max_chars) {
  std::string shown;
  std::size_t chars = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Utf8 next = first_utf8(text.substr(i));
    const bool safe = next.length > 0 && !is_unsafe_to_show(next.code);
    const std::string piece = safe ? std::string(text.substr(i, next.length))
                                   : fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
    chars += safe ? 1 : piece.size();
    if (chars > max_chars) return shown + "...";
    shown += piece;
    i += safe ? next.length : 1;
  }
  return shown;
}

}  // namespace rooflash
