// The list grammar of the axis flags, one parser for all:
//   512,1k,8k     a list (k = 1024, m = 1024 k)
//   512:16k:x2    geometric, both ends inclusive      1k:8k:1k   arithmetic, likewise
//   fa2,^naive    names; ^ leaves one out             all        every name
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflash {

// Positive counts in the order written, duplicates removed. Throws UsageError naming `flag`.
std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view flag);

// Comma-separated elements, duplicates removed; an empty element is a UsageError naming `flag`.
std::vector<std::string> parse_elements(std::string_view text, std::string_view flag);

// Which of `known` the list picks: the names written in that order; all of them for "all", or where
// the list holds exclusions only; minus the names after '^'.
// Throws UsageError on an unknown name, with a suggestion, and where nothing is left.
std::vector<std::string> select_names(const std::vector<std::string>& elements,
                                      const std::vector<std::string>& known, std::string_view flag);

}  // namespace rooflash
