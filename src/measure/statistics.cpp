#include "measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace rooflash {
namespace {

constexpr double kTail = 0.025;  // allowed below and above a 95 % interval

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> copy(values.begin(), values.end());
  std::sort(copy.begin(), copy.end());
  return copy;
}

}  // namespace

double median(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> ordered = sorted(values);
  const std::size_t middle = ordered.size() / 2;
  if (ordered.size() % 2 == 1) return ordered[middle];
  return ordered[middle - 1] + (ordered[middle] - ordered[middle - 1]) / 2;
}

std::int64_t median_ci95_rank(std::int64_t n) {
  // The number of samples below the median is Binomial(n, 1/2), so the k-th smallest lies above the
  // median with probability P(X <= k - 1). Logarithms, because 2^-n underflows for large n.
  const double log_half_n = static_cast<double>(n) * std::log(0.5);
  double below = 0;
  std::int64_t k = 0;
  while (2 * k < n) {
    const double x = static_cast<double>(k);
    const double count = static_cast<double>(n);
    below += std::exp(std::lgamma(count + 1) - std::lgamma(x + 1) - std::lgamma(count - x + 1) +
                      log_half_n);
    if (below > kTail) break;
    ++k;
  }
  return k;
}

Interval median_ci95(std::span<const double> values) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (values.empty()) return {kNan, kNan};
  const std::vector<double> ordered = sorted(values);
  const std::int64_t n = static_cast<std::int64_t>(ordered.size());
  const std::int64_t k = std::max<std::int64_t>(median_ci95_rank(n), 1);
  return {ordered[static_cast<std::size_t>(k - 1)], ordered[static_cast<std::size_t>(n - k)]};
}

double relative_spread(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return (*high - *low) / median(values);
}

std::string_view StopRule::fired(std::span<const double> samples, double elapsed_s) const {
  const std::int64_t n = static_cast<std::int64_t>(samples.size());
  if (n >= max_samples) return "max_samples";
  if (n < std::max<std::int64_t>(min_samples, 1)) return {};
  const Interval ci = median_ci95(samples);
  if (median_ci95_rank(n) > 0 && (ci.high - ci.low) / 2 <= max_noise * median(samples)) return "ci";
  if (elapsed_s >= max_time_s) return "max_time";
  return {};
}

}  // namespace rooflash
