// A kernel family as a whole: the geometric mean of its cases' times, so that many small slow-downs
// cannot hide below the thresholds of the cases.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/record.hpp"
#include "gate/shift.hpp"
#include "gate/time_shift.hpp"

namespace rooflash {

// For paired rounds and simulated rows: the mean of many cases is known better than one of them.
// Rounds of other days share a shift that no mean takes out, so there it is the cases' threshold.
inline constexpr double kFamilyShare = 0.75;

struct FamilyCase {
  const std::string& case_id;
  const std::string& kernel;
  const std::string& device_class;
  const TimeShift& time;
};

struct FamilyShift {
  Measure measure = Measure::time_us;
  std::string kernel;
  std::string device_class;
  std::vector<std::string> case_ids;  // those in the mean
  ByRound base_us;                    // geometric mean of the cases, of the rounds that all have
  ByRound candidate_us;
  Shift shift;
  OptDouble cycles_ratio;
  double threshold = 0;
  Direction direction = Direction::unsure;
  std::string reason;  // where unsure
};

// One for each kernel and device class with two cases or more. Cases so short that the absolute
// floor decides about them are left out. Sorted by kernel, then device class. `measure` says what
// the cases' times are of.
std::vector<FamilyShift> family_shifts(const std::vector<FamilyCase>& cases, Measure measure);

// "fp8", "fp8 quantising".
std::string family_name(const FamilyShift& family);

}  // namespace rooflash
