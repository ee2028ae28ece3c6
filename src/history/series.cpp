#include "history/series.hpp"

#include <algorithm>
#include <cctype>
#include <tuple>

#include "core/error.hpp"
#include "core/units.hpp"
#include "gate/match.hpp"

namespace rooflash {
namespace {

// "2026-01-31T09:05:00Z": texts of this form are in the order of their dates.
bool is_utc_date(std::string_view text) {
  constexpr std::string_view kForm = "dddd-dd-ddTdd:dd:ddZ";
  if (text.size() != kForm.size()) return false;
  for (std::size_t i = 0; i < kForm.size(); ++i) {
    const bool digit = std::isdigit(static_cast<unsigned char>(text[i])) != 0;
    if (kForm[i] == 'd' ? !digit : text[i] != kForm[i]) return false;
  }
  return true;
}

const std::optional<TimeUs>& time_of(const Row& row, Measure measure) {
  return measure == Measure::time_us ? row.time_us : row.quantize_us;
}

SeriesKey key_of(const Record& record, const Row& row, Measure measure) {
  const TimeUs& time = *time_of(row, measure);
  return {row.case_id,
          row.definition_hash,
          device_class(record, row),
          row.model.convention,
          time.l2,
          time.power,
          measure};
}

OptDouble hbm_bytes(const Row& row, Measure measure) {
  if (measure != Measure::time_us) return std::nullopt;
  if (row.simulated) return row.model.predicted_hbm_bytes;
  if (!row.counters.hbm_read_bytes || !row.counters.hbm_write_bytes) return std::nullopt;
  return *row.counters.hbm_read_bytes + *row.counters.hbm_write_bytes;
}

SeriesPoint point_of(const std::vector<const Row*>& rows, Measure measure) {
  SeriesPoint point;
  std::vector<double> times;
  std::vector<double> bytes;
  for (const Row* row : rows) {
    times.push_back(time_of(*row, measure)->median);
    if (const OptDouble counted = hbm_bytes(*row, measure)) bytes.push_back(*counted);
  }
  point.time_us = median(times);
  const TimeUs& first = *time_of(*rows[0], measure);
  point.ci95 = rows.size() > 1 ? median_ci95(times) : Interval{first.ci95_low, first.ci95_high};
  point.rows = std::ssize(rows);
  if (measure == Measure::time_us) {
    point.tflops = rows[0]->model.flops / point.time_us * 1e-6;
  }
  if (!bytes.empty()) point.hbm_bytes = median(bytes);
  return point;
}

}  // namespace

bool SeriesKey::operator<(const SeriesKey& other) const {
  const auto tied = [](const SeriesKey& key) {
    return std::tie(key.case_id, key.definition_hash, key.device_class, key.convention, key.l2,
                    key.power, key.measure);
  };
  return tied(*this) < tied(other);
}

bool is_implausible(const Row& row) {
  return std::find(row.flags.begin(), row.flags.end(), "implausible") != row.flags.end();
}

bool has_usable_time(const Row& row) {
  return row.status == Status::ok && row.time_us && !is_implausible(row);
}

void SeriesBuilder::add(const Record& record, const std::string& name) {
  const std::string& date = record.environment.date;
  if (!is_utc_date(date)) {
    throw UsageError(name + ": environment.date: \"" + printable(date, 60) +
                     "\" is not of the form 2026-01-31T09:05:00Z");
  }
  std::map<SeriesKey, std::vector<const Row*>> cases;
  for (const Row& row : record.rows) {
    for (const Measure measure : {Measure::time_us, Measure::quantize_us}) {
      if (has_usable_time(row) && time_of(row, measure)) {
        cases[key_of(record, row, measure)].push_back(&row);
      }
    }
  }
  for (const auto& [key, rows] : cases) {
    Series& series = series_[key];
    series.key = key;
    series.kernel = rows[0]->kernel;
    series.problem = rows[0]->problem;
    series.simulated = rows[0]->simulated;
    SeriesPoint point = point_of(rows, key.measure);
    point.date = date;
    point.commit = record.tool.commit;
    point.dirty = record.tool.dirty;
    point.record = name;
    series.points.push_back(std::move(point));
  }
}

std::vector<Series> SeriesBuilder::take() {
  std::vector<Series> all;
  for (auto& [key, series] : series_) {
    std::sort(series.points.begin(), series.points.end(),
              [](const SeriesPoint& a, const SeriesPoint& b) {
                return std::tie(a.date, a.record) < std::tie(b.date, b.record);
              });
    all.push_back(std::move(series));
  }
  series_.clear();
  return all;
}

}  // namespace rooflash
