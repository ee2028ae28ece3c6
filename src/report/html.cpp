#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

#include "core/embedded.hpp"
#include "report/data_table.hpp"
#include "report/escape.hpp"
#include "report/html_data.hpp"
#include "report/html_prose.hpp"
#include "report/pack.hpp"
#include "report/pivot.hpp"
#include "report/row_tables.hpp"
#include "report/sha256.hpp"
#include "report/summary_tables.hpp"

namespace rooflash {
namespace {

// The script, in the order in which its parts need each other.
constexpr const char* kScripts[] = {
    "format.js",  "filter.js",   "data.js",   "state.js",   "figure.js",   "pointer.js",
    "charts.js",  "roofline.js", "facets.js", "speedup.js", "scatter.js",  "comparison.js",
    "history.js", "cells.js",    "tables.js", "detail.js",  "download.js", "main.js"};

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

std::string history_html(const TimeHistory& history, std::size_t static_rows) {
  if (!history.fault.empty()) return "<p>" + escape_html(shortened(history.fault)) + "</p>\n";
  if (history.cases.empty()) return "<p>No case has a time in three of the records.</p>\n";
  std::string out = fmt::format(
      "<p>{} of {:.6g} % or more in {}{}. Advisory: they say where to look.</p>\n",
      counted(history.changes, "change"), history.threshold * 100,
      counted(std::ssize(history.cases), "case"),
      history.too_short > 0
          ? fmt::format(", {} of them with too few records for a change to show", history.too_short)
          : "");
  DataTable table = history_table(history);
  if (table.rows.size() > static_rows) table.rows.resize(static_rows);
  out += "<div class=\"chart\" data-chart=\"history\"></div>\n";
  return out + "<details><summary>Data table</summary>\n" + html_table(table) + "</details>\n";
}

// For a page without the section that the links of a table lead to.
void drop_links(DataTable& table) {
  table.links = false;
  for (DataRow& row : table.rows) row.anchor.clear();
}

constexpr std::string_view kSectionStart = "<section id=\"";

// Those asked for; else all, but the history where there is none.
std::vector<std::string> shown_sections(const HtmlOptions& options) {
  if (!options.sections.empty()) return options.sections;
  std::vector<std::string> names = section_names();
  if (!options.history) std::erase(names, "history");
  return names;
}

// The page's template with these sections alone, and the links to them.
std::string page_template(const std::vector<std::string>& sections) {
  std::string page(asset("reports/report.html"));
  const auto remove = [&](const std::string& from, std::string_view to) {
    const std::size_t begin = page.find(from);
    page.erase(begin, page.find(to, begin) + to.size() - begin);
  };
  for (const std::string& name : section_names()) {
    if (std::find(sections.begin(), sections.end(), name) != sections.end()) continue;
    remove(fmt::format("{}{}\"", kSectionStart, name), "</section>\n");
    remove(fmt::format("<a href=\"#{}\"", name), "</a>");
  }
  return page;
}

}  // namespace

std::vector<std::string> section_names() {
  std::vector<std::string> names;
  const std::string_view page = asset("reports/report.html");
  for (std::size_t at = page.find(kSectionStart); at != std::string_view::npos;
       at = page.find(kSectionStart, at)) {
    at += kSectionStart.size();
    names.emplace_back(page.substr(at, page.find('"', at) - at));
  }
  return names;
}

std::string html_report(std::span<const ReportRun> runs, const HtmlOptions& options) {
  const std::string_view style = asset("reports/report.css");
  const std::string script = report_script();
  const std::string_view d3 = asset("d3.min.js");
  const std::string title = options.title.empty() ? default_title(runs) : options.title;
  const std::vector<std::string> sections = shown_sections(options);
  const auto has = [&](std::string_view section) {
    return std::find(sections.begin(), sections.end(), section) != sections.end();
  };
  std::size_t rows = 0;
  for (const ReportRun& run : runs) rows += run.record->rows.size();
  // Tables that need the script for their end are short and closed, so that the page opens fast.
  const bool whole = rows <= options.static_rows;
  const std::size_t limit = whole ? options.static_rows : options.static_rows / 4;
  const auto table = [&](auto make) {
    DataTable made = make(runs, limit);
    if (!has("cases")) drop_links(made);
    return html_table(made);
  };
  const DataTable not_ok = not_ok_table(runs, limit);
  Values values;
  values["open"] = whole ? " open" : "";
  values["theme"] = escape_html(options.theme);
  values["policy"] = fmt::format(
      "default-src 'none'; script-src {} {}; style-src {}; img-src data: blob:; base-uri 'none'; "
      "form-action 'none'",
      csp_hash(d3), csp_hash(script), csp_hash(style));
  values["title"] = escape_html(shortened(title));
  values["first"] = sections.front();
  values["style"] = style;
  values["verdict"] = verdict_html(runs, has("summary"));
  values["summary"] = summary_html(runs);
  values["ranking"] = html_table(ranking_table(runs));
  values["roofline"] = table(roofline_table);
  values["throughput"] = table(throughput_table);
  values["speedup"] = table(speedup_table);
  values["bytes"] = table(bytes_table);
  values["memory"] = table(memory_table);
  values["accuracy"] = table(accuracy_table);
  values["advice"] = advice_html(runs);
  values["noise"] = table(noise_table);
  values["model"] = table(model_table);
  values["comparison"] =
      options.comparisons.empty()
          ? "<p>This report holds one record. <code>rooflash report BASE.json NEW.json -o "
            "page.html</code> compares two.</p>\n"
          : comparisons_html(options.comparisons, limit);
  values["history"] = options.history ? history_html(*options.history, limit) : "";
  values["not_ok"] = rows == 0             ? "<p>There are no rows.</p>"
                     : not_ok.rows.empty() ? "<p>Every row is ok.</p>"
                                           : html_table(not_ok);
  values["detail"] = table(detail_table);
  values["environment"] = environment_html(runs);
  values["method"] = method_html(runs);
  values["data"] = packed(data_json(runs, options));
  values["d3"] = d3;
  values["script"] = script;
  return fill(page_template(sections), values);
}

}  // namespace rooflash
