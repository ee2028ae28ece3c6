#include "report/html_prose.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/units.hpp"
#include "report/advice.hpp"
#include "report/data_table.hpp"
#include "report/escape.hpp"
#include "report/pivot.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

// How many rows ended how, each with its word.
std::string status_chips(const Record& record, bool has_summary) {
  std::map<Status, int> counts;
  for (const Row& row : record.rows) ++counts[row.status];
  std::string out =
      fmt::format("<span class=\"chip\">{}</span>", counted(std::ssize(record.rows), "row"));
  for (const auto& [status, count] : counts) {
    const char* const kind = status == Status::ok                                     ? "good"
                             : status == Status::unsupported || status == Status::oom ? "plain"
                                                                                      : "bad";
    out += fmt::format("<span class=\"chip {}\">{} {}</span>", kind, count, to_string(status));
  }
  const std::size_t warned = warnings(record).size();
  if (warned > 0) {
    const std::string text = counted(static_cast<std::int64_t>(warned), "warning");
    out += has_summary ? "<a class=\"chip warn\" href=\"#summary\">" + text + "</a>"
                       : "<span class=\"chip warn\">" + text + "</span>";
  }
  return out;
}

std::string run_name(std::span<const ReportRun> runs, std::size_t index) {
  return runs.size() > 1 ? escape_html(runs[index].name) + ": " : "";
}

// What is said of every run; of many in a box that scrolls, so that the charts are not far away.
std::string box_of_runs(std::string html, const char* label, std::size_t runs) {
  constexpr std::size_t kFew = 5;
  if (runs <= kFew) return html;
  return fmt::format(
      "<div class=\"runs\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n{}</div>\n", label,
      html);
}

// One line a device that is a model, and in which runs it is.
std::string simulated_html(std::span<const ReportRun> runs) {
  std::map<std::string, std::vector<std::string>> names;  // by device
  for (const ReportRun& run : runs) {
    for (const std::string& device : simulated_devices(*run.record)) {
      names[device].push_back(escape_html(run.name));
    }
  }
  std::string out;
  for (const auto& [device, in] : names) {
    const std::string where =
        in.size() == runs.size() ? "" : fmt::format("{}: ", fmt::join(in, ", "));
    out += fmt::format(
        "<p class=\"simulated\"><strong>Simulated.</strong> {}{} is a model: no GPU was measured, "
        "times and bytes are predictions.</p>\n",
        where, escape_html(shortened(device)));
  }
  return out;
}

}  // namespace

std::string default_title(std::span<const ReportRun> runs) {
  std::string title = "rooflash";
  std::set<std::string> seen;
  for (const ReportRun& run : runs) {
    const Record& record = *run.record;
    std::string part = record.suite;
    std::vector<std::string> names;
    for (const DeviceInfo& device : record.environment.devices) {
      const std::string name = device.name + (device.simulated ? " (simulated)" : "");
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
    if (!names.empty()) {
      part += fmt::format("{}{}", part.empty() ? "" : " on ", fmt::join(names, ", "));
    }
    if (!part.empty() && seen.insert(part).second) {
      title += (seen.size() > 1 ? " and " : ": ") + part;
    }
  }
  constexpr std::size_t kNamed = 3;
  return seen.size() <= kNamed ? title : fmt::format("rooflash: {} records", runs.size());
}

std::string verdict_html(std::span<const ReportRun> runs, bool has_summary) {
  std::string out;
  for (const ReportRun& run : runs) {
    const Tool& tool = run.record->tool;
    out += "<p class=\"strip\">";
    if (runs.size() > 1) out += "<strong>" + escape_html(run.name) + "</strong> ";
    out += status_chips(*run.record, has_summary);
    out += fmt::format("<span class=\"meta\">{} &middot; rooflash {} {}{}</span></p>\n",
                       escape_html(shortened(run.record->environment.date)),
                       escape_html(shortened(tool.version)), escape_html(shortened(tool.commit)),
                       tool.dirty ? ", modified" : "");
  }
  return simulated_html(runs) + box_of_runs(std::move(out), "Records", runs.size());
}

std::string summary_html(std::span<const ReportRun> runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    out += "<ul class=\"sentences\">";
    for (const std::string& sentence : summary_sentences(pivot(*runs[i].record))) {
      out += "<li>" + run_name(runs, i) + escape_html(sentence) + "</li>";
    }
    out += "</ul>\n<ul class=\"warnings\">";
    for (const Warning& warning : warnings(*runs[i].record)) {
      out += fmt::format("<li><strong>WARN</strong> {}{}: <em>{}</em></li>", run_name(runs, i),
                         escape_html(shortened(warning.what)), escape_html(warning.action));
    }
    out += "</ul>\n";
  }
  return box_of_runs(std::move(out), "Summaries", runs.size());
}

std::string advice_html(std::span<const ReportRun> runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (const Advice& item : advice(*runs[i].record)) {
      const bool optimise = item.kind == Advice::Kind::optimise;
      out += fmt::format(
          "<li data-kernel=\"{}\"><p><strong class=\"kind {}\">{}</strong> <b>{}</b> {} ({}{}, {})",
          escape_html(shortened(item.kernel)), optimise ? "opt" : "wrn", optimise ? "OPT" : "WRN",
          escape_html(shortened(item.kernel)), escape_html(item.title), run_name(runs, i),
          escape_html(shortened(item.device)), counted(item.rows, "row"));
      if (item.gain_pct) {
        out += fmt::format(" <span class=\"gain\">at most {:.0f} % of the time</span>",
                           *item.gain_pct);
      }
      out += fmt::format("</p><p><code>{}</code>: {}. <em>{}.</em></p></li>\n",
                         escape_html(shortened(item.case_id)),
                         escape_html(shortened(item.evidence)), escape_html(item.next));
    }
  }
  if (out.empty()) return "<p>No rule found anything to improve or to mind.</p>\n";
  return "<ul class=\"advice\">\n" + out + "</ul>\n";
}

}  // namespace rooflash
