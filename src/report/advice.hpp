// What a record suggests to do next: findings from its rows, each with the figures it rests on.
#pragma once

#include <string>
#include <vector>

#include "core/record.hpp"

namespace rooflash {

struct Advice {
  enum class Kind { optimise, warn };
  Kind kind = Kind::optimise;
  std::string kernel;
  std::string device;
  std::string title;     // "reads HBM again"
  int rows = 0;          // that the rule applies to
  std::string evidence;  // the row where it matters most, with its figures
  OptDouble gain_pct;    // of that row's time, at most; empty where no formula gives it
  std::string next;      // what to do
  std::string case_id;   // of that row
};

// One finding a rule, kernel and device; those with the largest gain first, then by rows. Only `ok`
// rows count.
std::vector<Advice> advice(const Record& record);

}  // namespace rooflash
