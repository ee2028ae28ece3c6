// Formats of services that track benchmarks over time: Bencher, github-action-benchmark, Otava.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/error.hpp"
#include "core/units.hpp"
#include "export/cases.hpp"
#include "record/json.hpp"
#include "report/escape.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

std::string dumped(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string commit_of(const Tool& tool) {
  return tool.commit + (tool.dirty ? "+modified" : "");
}

}  // namespace

Export export_bencher(const NamedRecord& input) {
  constexpr std::size_t kMaxName = 1024;
  Export out{"", rows_left_out(input)};
  Json json = Json::object();
  for (const Series& one : cases_of(input)) {
    const std::string name = case_name(one.key);
    if (name.size() > kMaxName) {
      out.left_out.push_back(
          fmt::format("{}: Bencher takes names of at most {} bytes", printable(name), kMaxName));
      continue;
    }
    const SeriesPoint& point = one.points.front();
    Json& measures = json[name];
    measures["time_us"] = {{"value", point.time_us},
                           {"lower_value", point.ci95.low},
                           {"upper_value", point.ci95.high}};
    if (point.tflops) measures["model_tflops"] = {{"value", *point.tflops}};
    if (point.hbm_bytes) measures["hbm_bytes"] = {{"value", *point.hbm_bytes}};
  }
  out.text = dumped(json);
  return out;
}

Export export_github_action_benchmark(const NamedRecord& input) {
  Export out{"", rows_left_out(input)};
  Json json = Json::array();
  for (const Series& one : cases_of(input)) {
    const std::string name = case_name(one.key);
    const SeriesPoint& point = one.points.front();
    json.push_back(
        {{"name", name + " time_us"},
         {"unit", "us"},
         {"value", point.time_us},
         {"range", fmt::format("95 %: {:.6g} to {:.6g}", point.ci95.low, point.ci95.high)},
         {"extra", fmt::format("median of {} row(s), rooflash {}", point.rows,
                               printable(commit_of(input.record.tool)))}});
    if (point.hbm_bytes) {
      json.push_back(
          {{"name", name + " hbm_bytes"}, {"unit", "bytes"}, {"value", *point.hbm_bytes}});
    }
  }
  out.text = dumped(json);
  return out;
}

Export export_otava_csv(std::span<const NamedRecord> inputs) {
  Export out;
  SeriesBuilder builder;
  std::map<std::pair<std::string, std::string>, const Record*> lines;  // by date and name
  for (const NamedRecord& input : inputs) {
    for (std::string& reason : rows_left_out(input)) out.left_out.push_back(std::move(reason));
    builder.add(input.record, input.name);
    lines[{input.record.environment.date, input.name}] = &input.record;
  }
  const std::vector<Series> all = builder.take();
  std::vector<const Series*> columns;
  out.text = "time,commit";
  for (const Series& series : all) {
    if (series.points.size() < lines.size()) {
      out.left_out.push_back(
          fmt::format("{}: has a time in {} of the {} records, and Otava takes no empty field",
                      case_name(series.key), series.points.size(), lines.size()));
      continue;
    }
    columns.push_back(&series);
    out.text += "," + csv_field(case_name(series.key) + " time_us");
  }
  out.text += "\r\n";
  std::size_t index = 0;
  for (const auto& [key, record] : lines) {
    out.text += csv_field(key.first) + "," + csv_field(commit_of(record->tool));
    for (const Series* series : columns) {
      out.text += fmt::format(",{}", series->points[index].time_us);
    }
    out.text += "\r\n";
    ++index;
  }
  return out;
}

}  // namespace rooflash
