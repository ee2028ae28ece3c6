#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/embedded.hpp"
#include "record/json.hpp"
#include "report/escape.hpp"
#include "report/html_prose.hpp"
#include "report/html_table.hpp"
#include "report/sha256.hpp"

namespace rooflash {
namespace {

// Of all rows together, so that a record of very many rows still opens fast.
constexpr std::size_t kSampleBudget = 400'000;
constexpr std::size_t kMaxSamplesPerRow = 200;
constexpr std::size_t kMinSamplesPerRow = 20;

std::string_view asset(std::string_view name) {
  const auto content = embedded(name);
  if (!content) throw std::logic_error("not embedded at build time: " + std::string(name));
  return *content;
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

std::string records_json(std::span<const Record> records) {
  std::size_t rows = 1;
  for (const Record& record : records) rows += record.rows.size();
  const std::size_t per_row =
      std::clamp(kSampleBudget / rows, kMinSamplesPerRow, kMaxSamplesPerRow);
  std::string json = "[";
  for (const Record& record : records) {
    if (json.size() > 1) json += ",\n";
    // Row by row: the JSON of one row at a time in memory. `rows` is the last key of a record.
    Record head = with_thinned_samples(record, per_row);
    const std::vector<Row> thinned = std::move(head.rows);
    head.rows.clear();
    nlohmann::ordered_json head_json = to_json(head);
    head_json.erase("rows");
    std::string text = dump_line(head_json);
    text.pop_back();
    json += escape_script_json(text) + ",\"rows\":[";
    for (const Row& row : thinned) {
      if (&row != thinned.data()) json += ",\n";
      json += escape_script_json(dump_line(to_json(row)));
    }
    json += "]}";
  }
  return json + "]";
}

}  // namespace

Record with_thinned_samples(const Record& record, std::size_t max_samples) {
  Record thinned = record;
  for (Row& row : thinned.rows) {
    row.trace.reset();
    if (!row.time_us || row.time_us->samples.size() <= max_samples) continue;
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
  }
  return thinned;
}

std::string html_report(std::span<const Record> records, const HtmlOptions& options) {
  const std::string_view style = asset("reports/report.css");
  const std::string_view script = asset("reports/report.js");
  const std::string_view d3 = asset("d3.min.js");
  const std::string title = options.title.empty() ? default_title(records) : options.title;
  const auto table = [&](const DataTable& data) { return html_table(data, options.static_rows); };
  const DataTable not_ok = not_ok_table(records);
  Values values;
  values["theme"] = escape_html(options.theme);
  values["policy"] = fmt::format(
      "default-src 'none'; script-src {} {}; style-src {}; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'",
      csp_hash(d3), csp_hash(script), csp_hash(style));
  values["title"] = escape_html(title);
  values["style"] = style;
  values["verdict"] = verdict_html(records);
  values["summary"] = summary_html(records) + table(ranking_table(records));
  values["roofline"] = table(roofline_table(records));
  values["throughput"] = table(throughput_table(records));
  values["bytes"] = table(bytes_table(records));
  values["cases"] = (not_ok.rows.empty() ? "<p>Every row is ok.</p>" : table(not_ok)) +
                    "<details open><summary>"
                    "Case detail</summary>" +
                    table(detail_table(records)) + "</details>";
  values["environment"] = environment_html(records);
  values["method"] = method_html(records);
  values["records"] = records_json(records);
  values["d3"] = d3;
  values["script"] = script;
  return fill(asset("reports/report.html"), values);
}

}  // namespace rooflash
