#include "cli/history_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/units.hpp"
#include "report/escape.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

const char* word(const ChangePoint& change) {
  return change.ratio > 1 ? "slower" : "faster";
}

std::string commit_of(const SeriesPoint& point) {
  return printable(point.commit, 40) + (point.dirty ? "+modified" : "");
}

std::string key_text(const SeriesKey& key) {
  return fmt::format("{}\n  {}, {} L2, {} power{}", printable(key.case_id, std::string_view::npos),
                     printable(key.device_class), key.l2, key.power,
                     key.measure == Measure::quantize_us ? ", quantising" : "");
}

std::string change_line(const Series& series, const ChangePoint& change) {
  const SeriesPoint& point = series.points[change.index];
  return fmt::format("  {} {}  {}  {} -> {}  {:+.1f}%  ({} before, {} after)\n", point.date,
                     commit_of(point), word(change), format_time_us(change.before_us),
                     format_time_us(change.after_us), (change.ratio - 1) * 100,
                     counted(static_cast<std::int64_t>(change.points_before), "record"),
                     change.points_after);
}

std::string block(const Series& series, const std::vector<ChangePoint>& changes) {
  const SeriesPoint& last = series.points.back();
  std::string text =
      fmt::format("{}: {}, {} to {}, last {}\n", key_text(series.key),
                  counted(std::ssize(series.points), "record"), series.points.front().date,
                  last.date, format_time_us(last.time_us));
  for (const ChangePoint& change : changes) text += change_line(series, change);
  return text + "\n";
}

std::string footer(const History& history) {
  std::int64_t changed = 0;
  std::int64_t changes = 0;
  std::int64_t too_short = 0;
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    changes += std::ssize(history.changes[i]);
    changed += history.changes[i].empty() ? 0 : 1;
    too_short += can_change(history.series[i]) ? 0 : 1;
  }
  std::string text =
      fmt::format("{} of {:.6g}% or more, in {} of {} series", counted(changes, "change"),
                  history.threshold * 100, changed, history.series.size());
  if (too_short > 0) {
    text += fmt::format("; {} too short to tell (a change needs {} records on either side)",
                        too_short, kLeastLevel);
  }
  return text + ". Advisory: rooflash gate judges.\n";
}

Json change_json(const Series& series, const ChangePoint& change) {
  const SeriesPoint& point = series.points[change.index];
  return {{"date", point.date},
          {"commit", point.commit},
          {"change", word(change)},
          {"before_us", change.before_us},
          {"after_us", change.after_us},
          {"ratio", change.ratio},
          {"records_before", change.points_before},
          {"records_after", change.points_after}};
}

Json point_json(const SeriesPoint& point) {
  Json json = {{"date", point.date},       {"commit", point.commit},
               {"dirty", point.dirty},     {"record", point.record},
               {"time_us", point.time_us}, {"ci95_us", {point.ci95.low, point.ci95.high}},
               {"rows", point.rows}};
  json["tflops"] = point.tflops ? Json(*point.tflops) : Json(nullptr);
  json["hbm_bytes"] = point.hbm_bytes ? Json(*point.hbm_bytes) : Json(nullptr);
  return json;
}

}  // namespace

std::string history_table(const History& history, bool all) {
  std::string text;
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    if (all || !history.changes[i].empty()) text += block(history.series[i], history.changes[i]);
  }
  return text + footer(history);
}

std::string history_csv(const History& history) {
  std::string text =
      "case,definition_hash,device_class,convention,l2,power,simulated,date,commit,dirty,record,"
      "time_us,ci95_low_us,ci95_high_us,rows,tflops,hbm_bytes,change,change_ratio,measure\r\n";
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    const Series& series = history.series[i];
    const SeriesKey& key = series.key;
    std::vector<std::string> start;
    for (const std::string& part :
         {key.case_id, key.definition_hash, key.device_class, key.convention, key.l2, key.power}) {
      start.push_back(csv_field(part));
    }
    auto change = history.changes[i].begin();
    for (std::size_t at = 0; at < series.points.size(); ++at) {
      const SeriesPoint& point = series.points[at];
      text +=
          fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}", fmt::join(start, ","),
                      series.simulated, csv_field(point.date), csv_field(point.commit), point.dirty,
                      csv_field(point.record), point.time_us, point.ci95.low, point.ci95.high,
                      point.rows, point.tflops ? fmt::format("{}", *point.tflops) : "",
                      point.hbm_bytes ? fmt::format("{}", *point.hbm_bytes) : "");
      const bool changes = change != history.changes[i].end() && change->index == at;
      text += changes ? fmt::format(",{},{}", word(*change), change->ratio) : ",,";
      text += fmt::format(",{}\r\n", to_string(key.measure));
      if (changes) ++change;
    }
  }
  return text;
}

std::string history_json(const History& history) {
  Json json = {{"history", 1}, {"threshold", history.threshold}};
  json["skipped"] = Json::array();
  for (const SkippedFile& file : history.skipped) {
    json["skipped"].push_back({{"file", file.path}, {"reason", file.reason}});
  }
  json["passed_over"] = history.passed_over;
  json["series"] = Json::array();
  for (std::size_t i = 0; i < history.series.size(); ++i) {
    const Series& series = history.series[i];
    Json one = {{"case", series.key.case_id},
                {"definition_hash", series.key.definition_hash},
                {"device_class", series.key.device_class},
                {"convention", series.key.convention},
                {"l2", series.key.l2},
                {"power", series.key.power},
                {"simulated", series.simulated},
                {"measure", to_string(series.key.measure)}};
    one["points"] = Json::array();
    for (const SeriesPoint& point : series.points) one["points"].push_back(point_json(point));
    one["changes"] = Json::array();
    for (const ChangePoint& change : history.changes[i]) {
      one["changes"].push_back(change_json(series, change));
    }
    json["series"].push_back(std::move(one));
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace rooflash
