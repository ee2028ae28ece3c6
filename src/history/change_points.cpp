#include "history/change_points.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace rooflash {
namespace {

// Of Laplace noise: half of its absolute steps from value to value are below 1.15 b, of normal
// noise with the same mean deviation below 1.19 b.
constexpr double kScaleOfStep = 0.85;
// A 95 % interval reaches 1.96 standard deviations to either side; the mean deviation of normal
// noise is 0.8 of one.
constexpr double kScaleOfInterval = 0.41;
constexpr double kLeastScale = 1e-6;

// Sum of absolute deviations from the median of values that come one by one.
class Deviation {
 public:
  void add(double value) {
    if (low_.empty() || value <= *low_.rbegin()) {
      low_.insert(value);
      low_sum_ += value;
    } else {
      high_.insert(value);
      high_sum_ += value;
    }
    if (low_.size() > high_.size() + 1) {
      move_one(low_, low_sum_, high_, high_sum_, std::prev(low_.end()));
    } else if (high_.size() > low_.size()) {
      move_one(high_, high_sum_, low_, low_sum_, high_.begin());
    }
  }
  double sum() const {
    const double middle = *low_.rbegin();
    return middle * static_cast<double>(low_.size()) - low_sum_ + high_sum_ -
           middle * static_cast<double>(high_.size());
  }

 private:
  using Half = std::multiset<double>;
  static void move_one(Half& from, double& from_sum, Half& to, double& to_sum,
                       Half::const_iterator at) {
    from_sum -= *at;
    to_sum += *at;
    to.insert(*at);
    from.erase(at);
  }

  Half low_;  // as many as `high_`, or one more
  Half high_;
  double low_sum_ = 0;
  double high_sum_ = 0;
};

std::size_t least_level(const Series& series) {
  return series.simulated ? 1 : kLeastLevel;
}

double noise_scale(const Series& series, const std::vector<double>& logs) {
  if (series.simulated) return kLeastScale;
  std::vector<double> steps;
  for (std::size_t i = 1; i < logs.size(); ++i) steps.push_back(std::fabs(logs[i] - logs[i - 1]));
  std::vector<double> half_widths;
  for (const SeriesPoint& point : series.points) {
    half_widths.push_back((point.ci95.high - point.ci95.low) / (2 * point.time_us));
  }
  return std::max(
      {kScaleOfStep * median(steps), kScaleOfInterval * median(half_widths), kLeastScale});
}

// First points of the second and later steps of the best fit.
std::vector<std::size_t> best_steps(const std::vector<double>& logs, double scale,
                                    std::size_t least) {
  const std::size_t n = logs.size();
  const double penalty = 2 * std::log(static_cast<double>(n));
  std::vector<double> best(n + 1, std::numeric_limits<double>::infinity());
  std::vector<std::size_t> last_start(n + 1, 0);
  best[0] = -penalty;
  // Forward: best[start] is final once every earlier start was tried.
  for (std::size_t start = 0; start + least <= n; ++start) {
    if (std::isinf(best[start])) continue;
    Deviation deviation;
    for (std::size_t end = start + 1; end <= n; ++end) {
      deviation.add(logs[end - 1]);
      if (end - start < least) continue;
      const double cost = best[start] + deviation.sum() / scale + penalty;
      if (cost < best[end]) {
        best[end] = cost;
        last_start[end] = start;
      }
    }
  }
  std::vector<std::size_t> starts;
  for (std::size_t end = last_start[n]; end > 0; end = last_start[end]) starts.push_back(end);
  std::reverse(starts.begin(), starts.end());
  return starts;
}

std::vector<ChangePoint> changes_at(const Series& series, const std::vector<std::size_t>& starts) {
  std::vector<double> times;
  for (const SeriesPoint& point : series.points) times.push_back(point.time_us);
  std::vector<ChangePoint> changes;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::size_t from = i == 0 ? 0 : starts[i - 1];
    const std::size_t to = i + 1 < starts.size() ? starts[i + 1] : times.size();
    const std::span<const double> before(times.data() + from, starts[i] - from);
    const std::span<const double> after(times.data() + starts[i], to - starts[i]);
    ChangePoint change{starts[i], median(before), median(after), before.size(), after.size()};
    change.ratio = change.after_us / change.before_us;
    changes.push_back(change);
  }
  return changes;
}

}  // namespace

bool can_change(const Series& series) {
  return series.points.size() >= 2 * least_level(series);
}

std::vector<ChangePoint> change_points(const Series& series, double threshold) {
  const std::size_t least = least_level(series);
  if (!can_change(series)) return {};
  std::vector<double> logs;
  for (const SeriesPoint& point : series.points) logs.push_back(std::log(point.time_us));
  std::vector<std::size_t> starts = best_steps(logs, noise_scale(series, logs), least);
  // A change below the threshold; and one whose first point is nearer to the level before: that
  // level has fewer points than it must have, and took this one along.
  const auto size = [](const ChangePoint& change) { return std::fabs(std::log(change.ratio)); };
  const auto holds = [&](const ChangePoint& change) {
    const double first = logs[change.index];
    return size(change) >= std::log1p(threshold) &&
           std::fabs(first - std::log(change.after_us)) <=
               std::fabs(first - std::log(change.before_us));
  };
  for (;;) {
    std::vector<ChangePoint> changes = changes_at(series, starts);
    auto least_sure = changes.end();
    for (auto change = changes.begin(); change != changes.end(); ++change) {
      if (holds(*change)) continue;
      if (least_sure == changes.end() || size(*change) < size(*least_sure)) least_sure = change;
    }
    if (least_sure == changes.end()) return changes;
    starts.erase(starts.begin() + (least_sure - changes.begin()));
  }
}

}  // namespace rooflash
