#include "gate/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace rooflash {
namespace {

constexpr double kTail = 0.025;     // allowed below and above a 95 % interval
constexpr double kTailZ = 1.95996;  // its normal quantile

using Counts = std::vector<double>;  // exact up to 2^53: C(50, 25) and 2^50 are below it

// Ranks from 1, times two: mean ranks of ties stay whole numbers.
std::vector<std::int64_t> doubled_ranks(std::span<const double> values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t i, std::size_t j) { return values[i] < values[j]; });
  std::vector<std::int64_t> ranks(values.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin;
    while (end < order.size() && values[order[end]] == values[order[begin]]) ++end;
    for (std::size_t i = begin; i < end; ++i) {
      ranks[order[i]] = static_cast<std::int64_t>(begin + 1 + end);
    }
    begin = end;
  }
  return ranks;
}

std::vector<std::int64_t> first_numbers(std::size_t n) {
  std::vector<std::int64_t> numbers(n);
  std::iota(numbers.begin(), numbers.end(), std::int64_t{1});
  return numbers;
}

// counts[s]: subsets of `items` whose sum is s.
Counts subset_sums(std::span<const std::int64_t> items) {
  const auto most =
      static_cast<std::size_t>(std::accumulate(items.begin(), items.end(), std::int64_t{0}));
  Counts counts(most + 1, 0.0);
  counts[0] = 1;
  for (const std::int64_t item : items) {
    for (std::size_t s = most; s >= static_cast<std::size_t>(item); --s) {
      counts[s] += counts[s - static_cast<std::size_t>(item)];
    }
  }
  return counts;
}

// counts[s]: subsets of `size` of the `items` whose sum is s.
Counts subset_sums(std::span<const std::int64_t> items, std::size_t size) {
  const auto most =
      static_cast<std::size_t>(std::accumulate(items.begin(), items.end(), std::int64_t{0}));
  std::vector<Counts> by_size(size + 1, Counts(most + 1, 0.0));
  by_size[0][0] = 1;
  for (const std::int64_t item : items) {
    const auto step = static_cast<std::size_t>(item);
    for (std::size_t k = size; k >= 1; --k) {
      for (std::size_t s = most; s >= step; --s) by_size[k][s] += by_size[k - 1][s - step];
    }
  }
  return by_size[size];
}

double two_sided(const Counts& counts, std::int64_t observed) {
  const auto at = counts.begin() + observed;
  const double below = std::accumulate(counts.begin(), at + 1, 0.0);
  const double above = std::accumulate(at, counts.end(), 0.0);
  return std::min(1.0, 2 * std::min(below, above) / (below + above - *at));
}

double normal_two_sided(double distance, double variance) {
  if (variance <= 0) return 1;
  const double z = std::max(0.0, std::fabs(distance) - 0.5) / std::sqrt(variance);
  return std::erfc(z / std::sqrt(2.0));
}

// How many of the smallest values of a statistic, from `least` up, are together no likelier than
// the tail.
std::int64_t tail_rank(const Counts& counts, std::int64_t least) {
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  double below = 0;
  std::int64_t rank = 0;
  for (auto at = counts.begin() + least; at != counts.end(); ++at, ++rank) {
    below += *at;
    if (below > kTail * total) break;
  }
  return rank;
}

std::int64_t normal_tail_rank(double mean, double variance) {
  return static_cast<std::int64_t>(std::floor(mean + 0.5 - kTailZ * std::sqrt(variance)));
}

std::optional<Interval> enclosed(std::vector<double> values, std::int64_t rank) {
  if (rank < 1) return std::nullopt;
  std::sort(values.begin(), values.end());
  const auto k = static_cast<std::size_t>(rank);
  return Interval{values[k - 1], values[values.size() - k]};
}

std::vector<double> walsh_means(std::span<const double> values) {
  std::vector<double> means;
  means.reserve(values.size() * (values.size() + 1) / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    for (std::size_t j = i; j < values.size(); ++j) means.push_back((values[i] + values[j]) / 2);
  }
  return means;
}

std::vector<double> all_differences(std::span<const double> a, std::span<const double> b) {
  std::vector<double> differences;
  differences.reserve(a.size() * b.size());
  for (const double x : a) {
    for (const double y : b) differences.push_back(y - x);
  }
  return differences;
}

double sum_of_squares(std::span<const std::int64_t> values) {
  double sum = 0;
  for (const std::int64_t v : values) sum += static_cast<double>(v) * static_cast<double>(v);
  return sum;
}

bool is_exact(std::size_t n) {
  return n <= static_cast<std::size_t>(kExactMost);
}

}  // namespace

double hodges_lehmann(std::span<const double> differences) {
  return median(walsh_means(differences));
}

double hodges_lehmann(std::span<const double> a, std::span<const double> b) {
  return median(all_differences(a, b));
}

std::optional<Interval> signed_rank_ci95(std::span<const double> differences) {
  const double n = static_cast<double>(differences.size());
  const std::int64_t rank = is_exact(differences.size())
                                ? tail_rank(subset_sums(first_numbers(differences.size())), 0)
                                : normal_tail_rank(n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24);
  return enclosed(walsh_means(differences), rank);
}

std::optional<Interval> rank_sum_ci95(std::span<const double> a, std::span<const double> b) {
  const double m = static_cast<double>(a.size());
  const double n = static_cast<double>(b.size());
  const auto least = static_cast<std::int64_t>(a.size() * (a.size() + 1) / 2);
  const std::int64_t rank =
      is_exact(a.size() + b.size())
          ? tail_rank(subset_sums(first_numbers(a.size() + b.size()), a.size()), least)
          : normal_tail_rank(m * n / 2, m * n * (m + n + 1) / 12);
  return enclosed(all_differences(a, b), rank);
}

double signed_rank_p(std::span<const double> differences) {
  std::vector<double> sizes;
  std::vector<bool> positive;
  for (const double d : differences) {
    if (d == 0) continue;
    sizes.push_back(std::fabs(d));
    positive.push_back(d > 0);
  }
  const std::vector<std::int64_t> ranks = doubled_ranks(sizes);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) sum += positive[i] ? ranks[i] : 0;
  if (is_exact(ranks.size())) return two_sided(subset_sums(ranks), sum);
  const double n = static_cast<double>(ranks.size());
  return normal_two_sided(static_cast<double>(sum) / 2 - n * (n + 1) / 4,
                          sum_of_squares(ranks) / 16);
}

double rank_sum_p(std::span<const double> a, std::span<const double> b) {
  if (a.empty() || b.empty()) return 1;
  std::vector<double> pooled(a.begin(), a.end());
  pooled.insert(pooled.end(), b.begin(), b.end());
  const std::vector<std::int64_t> ranks = doubled_ranks(pooled);
  const std::int64_t sum =
      std::accumulate(ranks.begin(), ranks.begin() + std::ssize(a), std::int64_t{0});
  if (is_exact(pooled.size())) return two_sided(subset_sums(ranks, a.size()), sum);
  const double m = static_cast<double>(a.size());
  const double total = static_cast<double>(pooled.size());
  const double mean_rank = (total + 1) / 2;
  const double spread = sum_of_squares(ranks) / 4 - total * mean_rank * mean_rank;
  return normal_two_sided(static_cast<double>(sum) / 2 - m * mean_rank,
                          m * (total - m) / (total * (total - 1)) * spread);
}

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return p[i] > p[j]; });
  std::vector<double> q(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double rank = static_cast<double>(p.size() - i);
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / rank);
    q[order[i]] = least;
  }
  return q;
}

}  // namespace rooflash
