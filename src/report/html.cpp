#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/embedded.hpp"
#include "record/describe.hpp"
#include "record/json.hpp"
#include "report/data_table.hpp"
#include "report/escape.hpp"
#include "report/html_prose.hpp"
#include "report/pack.hpp"
#include "report/row_tables.hpp"
#include "report/sha256.hpp"
#include "report/summary_tables.hpp"

namespace rooflash {
namespace {

// Of all rows together, so that a record of very many rows still opens fast.
constexpr std::size_t kSampleBudget = 100'000;
constexpr std::size_t kMaxSamplesPerRow = 200;
constexpr std::size_t kMinSamplesPerRow = 5;

// The script, in the order in which its parts need each other.
constexpr const char* kScripts[] = {"format.js",   "filter.js",     "data.js",   "state.js",
                                    "figure.js",   "roofline.js",   "facets.js", "speedup.js",
                                    "scatter.js",  "comparison.js", "tables.js", "detail.js",
                                    "download.js", "main.js"};

std::string_view asset(std::string_view name) {
  const auto content = embedded(name);
  if (!content) throw std::logic_error("not embedded at build time: " + std::string(name));
  return *content;
}

std::string report_script() {
  std::string script = "(async () => {\n\"use strict\";\n";
  for (const char* name : kScripts) script += asset(std::string("reports/js/") + name);
  return script + "})();\n";
}

std::string csp_hash(std::string_view content) {
  return "'sha256-" + base64(sha256(content)) + "'";
}

using Values = std::map<std::string_view, std::string, std::less<>>;

// Replaces each {{name}} of the template once; values are never scanned again.
std::string fill(std::string_view text, const Values& values) {
  std::string out;
  while (true) {
    const std::size_t open = text.find("{{");
    out += text.substr(0, open);
    if (open == std::string_view::npos) return out;
    const std::size_t close = text.find("}}", open);
    out += values.at(text.substr(open + 2, close - open - 2));
    text.remove_prefix(close + 2);
  }
}

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

// {"records": [...], "comparisons": [...]}. Row by row: the JSON of one row at a time in memory.
std::string data_json(std::span<const Record> records,
                      const std::vector<RecordComparison>& comparisons) {
  std::size_t rows = 1;
  for (const Record& record : records) rows += record.rows.size();
  const std::size_t per_row =
      std::clamp(kSampleBudget / rows, kMinSamplesPerRow, kMaxSamplesPerRow);
  std::string json = "{\"records\":[";
  for (const Record& record : records) {
    if (&record != records.data()) json += ",\n";
    Record head = record;
    head.rows.clear();
    Json head_json = to_json(head);
    head_json.erase("rows");
    std::string text = dump_line(head_json);
    text.pop_back();
    json += text + ",\"rows\":[";
    for (const Row& row : record.rows) {
      if (&row != record.rows.data()) json += ",\n";
      json += to_json_line(with_thinned_samples(row, per_row));
    }
    json += "]}";
  }
  json += "],\"comparisons\":[";
  for (const RecordComparison& comparison : comparisons) {
    if (&comparison != comparisons.data()) json += ",\n";
    json += dump_line(comparison_json(comparison));
  }
  return json + "]}";
}

std::string comparisons_html(const std::vector<RecordComparison>& comparisons,
                             std::size_t static_rows) {
  std::string out;
  for (std::size_t i = 0; i < comparisons.size(); ++i) {
    const RecordComparison& comparison = comparisons[i];
    out += fmt::format("<h3>{} against {}: {}</h3>\n", escape_html(comparison.new_name),
                       escape_html(comparison.base_name), escape_html(comparison.counts));
    if (comparison.geomean) {
      out += fmt::format("<p>Geometric mean of the times: {:+.1f} % over {} cases.</p>\n",
                         100 * (*comparison.geomean - 1), comparison.geomean_cases);
    }
    for (const std::string& difference : comparison.differences) {
      out +=
          fmt::format("<p class=\"note\">Differs: {}.</p>\n", escape_html(shortened(difference)));
    }
    DataTable table = comparison_table(comparison, i);
    if (table.rows.size() > static_rows) table.rows.resize(static_rows);
    out += fmt::format("<div class=\"chart wide\" data-chart=\"comparison-{}\"></div>\n", i + 1);
    out += "<details><summary>Data table</summary>\n" + html_table(table) + "</details>\n";
  }
  return out;
}

}  // namespace

Row with_thinned_samples(Row row, std::size_t max_samples) {
  row.trace.reset();
  if (!row.time_us || row.time_us->samples.size() <= max_samples) return row;
  std::vector<double>& samples = row.time_us->samples;
  const std::size_t n = samples.size();
  const auto [low, high] = std::minmax_element(samples.begin(), samples.end());
  std::vector<std::size_t> kept{static_cast<std::size_t>(low - samples.begin()),
                                static_cast<std::size_t>(high - samples.begin())};
  const std::size_t spread = max_samples > 2 ? max_samples - 2 : 0;
  for (std::size_t i = 0; i < spread; ++i) kept.push_back(i * n / spread);
  std::sort(kept.begin(), kept.end());
  kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
  const auto pick = [&](const std::vector<double>& from) {
    std::vector<double> to;
    for (const std::size_t i : kept) to.push_back(from[i]);
    return to;
  };
  if (row.clock_mhz && row.clock_mhz->samples.size() == n) {
    row.clock_mhz->samples = pick(row.clock_mhz->samples);
  }
  samples = pick(samples);
  row.missing["time_us.samples"] =
      fmt::format("{} of {} samples kept in the report", samples.size(), n);
  return row;
}

std::string html_report(std::span<const Record> records, const HtmlOptions& options) {
  const std::string_view style = asset("reports/report.css");
  const std::string script = report_script();
  const std::string_view d3 = asset("d3.min.js");
  const std::string title = options.title.empty() ? default_title(records) : options.title;
  std::size_t rows = 0;
  for (const Record& record : records) rows += record.rows.size();
  // Tables that need the script for their end are short and closed, so that the page opens fast.
  const bool whole = rows <= options.static_rows;
  const std::size_t limit = whole ? options.static_rows : options.static_rows / 4;
  const auto table = [&](auto make) { return html_table(make(records, limit)); };
  const DataTable not_ok = not_ok_table(records, limit);
  Values values;
  values["open"] = whole ? " open" : "";
  values["theme"] = escape_html(options.theme);
  values["policy"] = fmt::format(
      "default-src 'none'; script-src {} {}; style-src {}; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'",
      csp_hash(d3), csp_hash(script), csp_hash(style));
  values["title"] = escape_html(shortened(title));
  values["style"] = style;
  values["verdict"] = verdict_html(records);
  values["summary"] = summary_html(records);
  values["ranking"] = html_table(ranking_table(records));
  values["roofline"] = table(roofline_table);
  values["throughput"] = table(throughput_table);
  values["speedup"] = table(speedup_table);
  values["bytes"] = table(bytes_table);
  values["memory"] = table(memory_table);
  values["accuracy"] = table(accuracy_table);
  values["advice"] = advice_html(records);
  values["noise"] = table(noise_table);
  values["model"] = table(model_table);
  values["comparison"] =
      options.comparisons.empty()
          ? "<p>This report holds one record. <code>rooflash report BASE.json NEW.json -o "
            "page.html</code> compares two.</p>\n"
          : comparisons_html(options.comparisons, limit);
  values["not_ok"] = rows == 0             ? "<p>There are no rows.</p>"
                     : not_ok.rows.empty() ? "<p>Every row is ok.</p>"
                                           : html_table(not_ok);
  values["detail"] = table(detail_table);
  values["environment"] = environment_html(records);
  values["method"] = method_html(records);
  values["data"] = packed(data_json(records, options.comparisons));
  values["d3"] = d3;
  values["script"] = script;
  return fill(asset("reports/report.html"), values);
}

}  // namespace rooflash
