#include "gate/family.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace rooflash {
namespace {

using Members = std::vector<const FamilyCase*>;

// The geometric mean over the members, of each round that all of them have.
ByRound mean_by_round(const Members& members, ByRound TimeShift::*values) {
  std::map<int, std::pair<std::size_t, double>> sums;  // how many, and the sum of the logarithms
  for (const FamilyCase* one : members) {
    for (const auto& [round, value] : one->time.*values) {
      ++sums[round].first;
      sums[round].second += std::log(value);
    }
  }
  ByRound means;
  for (const auto& [round, sum] : sums) {
    if (sum.first == members.size()) {
      means[round] = std::exp(sum.second / static_cast<double>(sum.first));
    }
  }
  return means;
}

double threshold_of(const Members& members) {
  double sum = 0;
  for (const FamilyCase* one : members) sum += one->time.relative;
  const double mean = sum / static_cast<double>(members.size());
  return members.front()->time.pairing == Pairing::unpaired ? mean : kFamilyShare * mean;
}

std::optional<Shift> shift_in_cycles(const Members& members) {
  const bool compute_bound = std::all_of(members.begin(), members.end(),
                                         [](const auto* one) { return one->time.compute_bound; });
  const ByRound base = mean_by_round(members, &TimeShift::base_cycles);
  const ByRound candidate = mean_by_round(members, &TimeShift::candidate_cycles);
  if (!compute_bound || base.empty() || candidate.empty()) return std::nullopt;
  return shift_between(base, candidate, members.front()->time.pairing);
}

FamilyShift family_shift(const Members& members, Measure measure) {
  FamilyShift family;
  family.measure = measure;
  family.kernel = members.front()->kernel;
  family.device_class = members.front()->device_class;
  for (const FamilyCase* one : members) family.case_ids.push_back(one->case_id);
  family.base_us = mean_by_round(members, &TimeShift::base_us);
  family.candidate_us = mean_by_round(members, &TimeShift::candidate_us);
  family.threshold = threshold_of(members);
  if (family.base_us.empty() || family.candidate_us.empty()) {
    family.reason = "no round that all its cases have";
    return family;
  }
  const Pairing pairing = members.front()->time.pairing;
  family.shift = shift_between(family.base_us, family.candidate_us, pairing);
  family.direction = direction_of(family.shift, family.threshold);
  if (!family.shift.ci95) {
    family.reason = too_few_rounds(family.base_us, family.candidate_us, pairing);
  } else if (family.direction == Direction::unsure) {
    family.reason = "more rounds would tell";
  } else if (family.direction != Direction::same && pairing != Pairing::exact) {
    const std::optional<Shift> cycles = shift_in_cycles(members);
    if (cycles) family.cycles_ratio = cycles->ratio;
    const bool shared = std::any_of(members.begin(), members.end(),
                                    [](const auto* one) { return one->time.shared_gpu; });
    family.reason = doubt_of_change(shared, cycles, family.threshold);
    if (!family.reason.empty()) family.direction = Direction::unsure;
  }
  return family;
}

}  // namespace

std::vector<FamilyShift> family_shifts(const std::vector<FamilyCase>& cases, Measure measure) {
  std::map<std::pair<std::string, std::string>, Members> families;
  for (const FamilyCase& one : cases) {
    if (!one.time.is_below_floor()) families[{one.kernel, one.device_class}].push_back(&one);
  }
  std::vector<FamilyShift> shifts;
  for (const auto& [name, members] : families) {
    if (members.size() > 1) shifts.push_back(family_shift(members, measure));
  }
  return shifts;
}

std::string family_name(const FamilyShift& family) {
  return family.kernel + (family.measure == Measure::quantize_us ? " quantising" : "");
}

}  // namespace rooflash
