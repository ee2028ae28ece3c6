// What `compare` and `gate` share: their flags, and the records read and filtered.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gate/compare.hpp"

namespace CLI {
class App;
}

namespace rooflash {

// As typed.
struct ComparisonFlags {
  std::optional<std::string> threshold;
  std::optional<std::string> floor;
  std::string metrics = "static,counters,time";
  std::string rules;  // a file
  bool paired = false;
  bool all = false;
};

void add_comparison_flags(CLI::App& app, ComparisonFlags& flags, const char* group = "Options");

// Throws UsageError naming the flag, or the place in the file of rules.
CompareRules rules_of(const ComparisonFlags& flags);

// The record at `path` with the rows that all filters keep. Throws UsageError.
Record read_filtered(const std::string& path, const std::vector<std::string>& filters);

// "1 slower, 22 same"; "no case" where there is none.
std::string verdict_counts(const Comparison& comparison);

// Warnings on stderr: what differs between the environments, and what stops verdicts.
void print_comparison_warnings(const Comparison& comparison);

}  // namespace rooflash
