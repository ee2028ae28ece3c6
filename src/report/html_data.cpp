#include "report/html_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "record/describe.hpp"
#include "record/json.hpp"

namespace rooflash {
namespace {

// Of all rows together, so that a record of very many rows still opens fast.
constexpr std::size_t kSampleBudget = 100'000;
constexpr std::size_t kMaxSamplesPerRow = 200;
constexpr std::size_t kMinSamplesPerRow = 5;

Json json_of(OptDouble value) {
  return value ? Json(*value) : Json(nullptr);
}

// What the forest plot draws, the filter looks at and the table shows.
Json comparison_json(const RecordComparison& comparison) {
  Json cases = Json::array();
  for (const ComparedCase& one : comparison.cases) {
    Json item;
    item["case"] = one.case_id;
    item["device"] = one.device_class;
    item["kernel"] = one.kernel;
    item["problem"] = JsonWriter::encode(one.problem);
    item["verdict"] = one.verdict;
    item["reason"] = one.reason;
    item["base_us"] = json_of(one.base_us);
    item["new_us"] = json_of(one.new_us);
    item["ratio"] = json_of(one.ratio);
    item["ci95_low"] = json_of(one.ci95_low);
    item["ci95_high"] = json_of(one.ci95_high);
    item["threshold"] = json_of(one.threshold);
    item["q"] = json_of(one.q);
    item["figures"] = one.figures;
    cases.push_back(std::move(item));
  }
  Json json;
  json["base_name"] = comparison.base_name;
  json["new_name"] = comparison.new_name;
  json["cases"] = std::move(cases);
  return json;
}

Json history_json(const TimeHistory& history) {
  Json cases = Json::array();
  for (const CaseHistory& one : history.cases) {
    Json points = Json::array();
    for (const HistoryPoint& point : one.points) {
      points.push_back({{"date", point.date},
                        {"commit", point.commit},
                        {"run", point.run},
                        {"time_us", point.time_us},
                        {"ci95_us", {point.ci95_low_us, point.ci95_high_us}},
                        {"level_us", point.level_us},
                        {"change", json_of(point.change)}});
    }
    cases.push_back({{"case", one.case_id},
                     {"device", one.where},
                     {"kernel", one.kernel},
                     {"problem", JsonWriter::encode(one.problem)},
                     {"simulated", one.simulated},
                     {"points", std::move(points)}});
  }
  return cases;
}

// A number, or the reason why there is none, for each row.
Json detectable_json(const ReportRun& run) {
  Json list = Json::array();
  for (const Row& row : run.record->rows) {
    const Detectable found = run.detectable_of(row);
    list.push_back(found.change ? Json(*found.change) : Json(found.reason));
  }
  return list;
}

std::string record_json(const Record& record, std::size_t samples_per_row) {
  Record head = record;
  head.rows.clear();
  Json head_json = to_json(head);
  head_json.erase("rows");
  std::string text = dump_line(head_json);
  text.pop_back();
  text += ",\"rows\":[";
  for (const Row& row : record.rows) {
    if (&row != record.rows.data()) text += ",\n";
    text += to_json_line(with_thinned_samples(row, samples_per_row));
  }
  return text + "]}";
}

// Keeps at most `most` of the samples, the extremes among them, and the same of `parallel`, where
// that is as long.
void thin(TimeUs& time, std::vector<double>* parallel, std::size_t most) {
  const std::size_t n = time.samples.size();
  const auto [low, high] = std::minmax_element(time.samples.begin(), time.samples.end());
  std::vector<std::size_t> kept{static_cast<std::size_t>(low - time.samples.begin()),
                                static_cast<std::size_t>(high - time.samples.begin())};
  const std::size_t spread = most > 2 ? most - 2 : 0;
  for (std::size_t i = 0; i < spread; ++i) kept.push_back(i * n / spread);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  for (std::vector<double>* samples : {parallel, &time.samples}) {
    if (samples == nullptr || samples->size() != n) continue;
    for (std::size_t i = 0; i < kept.size(); ++i) (*samples)[i] = (*samples)[kept[i]];
    samples->resize(kept.size());
  }
}

}  // namespace

Row with_thinned_samples(Row row, std::size_t max_samples) {
  row.trace.reset();
  const auto thin_field = [&](const char* path, std::optional<TimeUs>& time,
                              std::vector<double>* parallel) {
    if (!time || time->samples.size() <= max_samples) return;
    thin(*time, parallel, max_samples);
    row.missing[path] =
        fmt::format("{} of {} samples kept in the report", time->samples.size(), time->n);
  };
  thin_field("time_us.samples", row.time_us, row.clock_mhz ? &row.clock_mhz->samples : nullptr);
  thin_field("quantize_us.samples", row.quantize_us, nullptr);
  return row;
}

std::string data_json(std::span<const ReportRun> runs, const HtmlOptions& options) {
  std::size_t rows = 1;
  for (const ReportRun& run : runs) rows += run.record->rows.size();
  const std::size_t per_row =
      std::clamp(kSampleBudget / rows, kMinSamplesPerRow, kMaxSamplesPerRow);
  std::string json = "{\"records\":[";
  Json names = Json::array();
  Json detectable = Json::array();
  for (const ReportRun& run : runs) {
    if (&run != runs.data()) json += ",\n";
    json += record_json(*run.record, per_row);
    names.push_back(run.name);
    detectable.push_back(detectable_json(run));
  }
  json += "],\"comparisons\":[";
  for (const RecordComparison& comparison : options.comparisons) {
    if (&comparison != options.comparisons.data()) json += ",\n";
    json += dump_line(comparison_json(comparison));
  }
  json += fmt::format("],\"names\":{},\"detectable\":{},\"max_points\":{},\"history\":{}}}",
                      dump_line(names), dump_line(detectable), options.max_points,
                      options.history ? dump_line(history_json(*options.history)) : "[]");
  return json;
}

}  // namespace rooflash
