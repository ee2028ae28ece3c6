// Numbers as people write and read them. Locale-free in both directions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace rooflash {

// "512", "4k", "2m" (k = 1024, m = 1024 k) to a positive count. Throws UsageError naming `flag`.
std::int64_t parse_count(std::string_view text, std::string_view flag);

// "64k", "227KiB", "1.5g" to bytes (k, m, g are binary). Throws UsageError naming `flag`.
std::int64_t parse_bytes(std::string_view text, std::string_view flag);

// "200ms", "1.5s", "50us" to seconds. A bare number is a UsageError that shows the accepted form.
double parse_seconds(std::string_view text, std::string_view flag);

// A number of repetitions, "50x". A bare number is a UsageError.
std::int64_t parse_repetitions(std::string_view text, std::string_view flag);

// "0.5%" to 0.005. A bare number, NaN, infinity and negatives are a UsageError.
double parse_percent(std::string_view text, std::string_view flag);

std::string format_count(std::int64_t value);                  // 16384 -> "16k", 4250 -> "4250"
std::string format_gib(double bytes);                          // "256 MiB", "8.0 GiB"
std::string format_time_us(double time_us);                    // "61.2 us", "1.15 ms"
std::string format_rate(double value, std::string_view unit);  // 611.4 "TFLOPS" -> "611 TFLOPS"

// `text` with control characters, invisible marks and malformed bytes shown as \xNN, for terminals
// and error messages. At most `max_chars`, cut with "...".
std::string printable(std::string_view text, std::size_t max_chars = 200);

}  // namespace rooflash
