#include "gate/shift.hpp"

#include <fmt/format.h>

#include <cmath>

#include "gate/statistics.hpp"

namespace rooflash {
namespace {

std::vector<double> logarithms(const ByRound& rounds) {
  std::vector<double> logs;
  for (const auto& [round, value] : rounds) logs.push_back(std::log(value));
  return logs;
}

std::optional<Interval> ratios(const std::optional<Interval>& logs) {
  if (!logs) return std::nullopt;
  return Interval{std::exp(logs->low), std::exp(logs->high)};
}

double ratio_of_medians(const ByRound& base, const ByRound& candidate) {
  return median(values_of(candidate)) / median(values_of(base));
}

Shift paired_shift(const ByRound& base, const ByRound& candidate) {
  const std::vector<double> differences = paired_differences(base, candidate);
  if (differences.size() < kLeastPairs) return {ratio_of_medians(base, candidate), {}, {}};
  return {std::exp(hodges_lehmann(differences)), ratios(signed_rank_ci95(differences)),
          signed_rank_p(differences)};
}

Shift unpaired_shift(const ByRound& base, const ByRound& candidate) {
  if (base.size() < kLeastBaseRounds || candidate.size() < kLeastNewRounds) {
    return {ratio_of_medians(base, candidate), {}, {}};
  }
  const std::vector<double> a = logarithms(base);
  const std::vector<double> b = logarithms(candidate);
  return {std::exp(hodges_lehmann(a, b)), ratios(rank_sum_ci95(a, b)), rank_sum_p(a, b)};
}

}  // namespace

std::vector<double> values_of(const ByRound& rounds) {
  std::vector<double> values;
  for (const auto& [round, value] : rounds) values.push_back(value);
  return values;
}

Shift shift_between(const ByRound& base, const ByRound& candidate, Pairing pairing) {
  if (pairing == Pairing::paired) return paired_shift(base, candidate);
  if (pairing == Pairing::unpaired) return unpaired_shift(base, candidate);
  const double ratio = ratio_of_medians(base, candidate);
  return {ratio, Interval{ratio, ratio}, {}};
}

Direction direction_of(const Shift& shift, double threshold) {
  if (!shift.ci95) return Direction::unsure;
  const double high = 1 + threshold;
  const double low = 1 / high;
  if (shift.ci95->low > 1 && shift.ratio >= high) return Direction::slower;
  if (shift.ci95->high < 1 && shift.ratio <= low) return Direction::faster;
  if (shift.ci95->low > low && shift.ci95->high < high) return Direction::same;
  return Direction::unsure;
}

std::vector<double> paired_differences(const ByRound& base, const ByRound& candidate) {
  std::vector<double> differences;
  for (const auto& [round, value] : base) {
    const auto other = candidate.find(round);
    if (other != candidate.end()) differences.push_back(std::log(other->second / value));
  }
  return differences;
}

std::string too_few_rounds(const ByRound& base, const ByRound& candidate, Pairing pairing) {
  if (pairing == Pairing::paired) {
    return fmt::format("needs {} pairs of rounds, has {}", kLeastPairs,
                       paired_differences(base, candidate).size());
  }
  return fmt::format("needs {} + {} rounds, has {} + {}", kLeastBaseRounds, kLeastNewRounds,
                     base.size(), candidate.size());
}

std::string percent_change(double ratio) {
  const double percent = (ratio - 1) * 100;
  return fmt::format("{:+.1f}%", std::fabs(percent) < 0.05 ? 0.0 : percent);
}

}  // namespace rooflash
