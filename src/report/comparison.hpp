// A comparison of two records, as the report shows it. Plain data: gate/ judges, cli/ hands it on.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct ComparedCase {
  std::string case_id;
  std::string device_class;  // "NVIDIA H200, 132 SMs"
  std::string kernel;
  Problem problem;
  std::string verdict;  // slower, faster, same, unsure, new, gone, ...
  std::string reason;   // "" where the verdict needs none
  OptDouble base_us;    // median over the rounds; empty where a side has no time
  OptDouble new_us;
  OptDouble ratio;     // new / base
  OptDouble ci95_low;  // of the ratio; empty where the rounds are too few
  OptDouble ci95_high;
  OptDouble q;          // Benjamini-Hochberg
  OptDouble threshold;  // relative change that matters
  std::string figures;  // other figures that changed: "hbm_bytes +3.1%"; "" where none
  std::string repro;
};

struct RecordComparison {
  std::string base_name;  // "run 1"
  std::string new_name;
  std::string counts;  // "1 slower, 22 same"
  OptDouble geomean;   // of the ratios of time
  int geomean_cases = 0;
  std::vector<std::string> differences;  // of the environments
  std::vector<ComparedCase> cases;
};

}  // namespace rooflash
