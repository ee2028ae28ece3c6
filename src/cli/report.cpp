// rooflash report: records to a table, HTML, Markdown or CSV.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "cli/commands.hpp"
#include "cli/comparison.hpp"
#include "cli/flags.hpp"
#include "cli/open_file.hpp"
#include "cli/outputs.hpp"
#include "cli/record_reference.hpp"
#include "cli/report_data.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/writer.hpp"
#include "report/formats.hpp"
#include "report/html.hpp"
#include "report/plot.hpp"
#include "report/table.hpp"
#include "sweep/list_grammar.hpp"

namespace rooflash {
namespace {

const std::vector<std::string> kFormats = {"table", "md", "csv", "json"};
const std::vector<std::string> kThemes = {"auto", "light", "dark"};
constexpr std::size_t kRunsOfHistory = 3;
constexpr std::int64_t kLeastMaxPoints = 10;  // the extremes of a chart, and some between them

struct ReportFlags {
  std::vector<std::string> records;
  std::vector<std::string> outputs;
  std::vector<std::string> filters;
  std::string format;  // "" prints the table where nothing else is asked for
  bool plot = false;
  // Of the HTML page.
  std::optional<std::string> title;
  std::optional<std::string> theme;
  std::optional<std::string> sections;
  std::optional<std::string> max_points;
  bool open = false;
};

bool is_page(const std::string& output) {
  return output.ends_with(".html");
}

// Refuses what would fail, or overwrite a record that is read, before anything is written.
void check_flags(const ReportFlags& flags, const std::vector<RecordReference>& records) {
  for (const std::string& output : flags.outputs) {
    for (const RecordReference& record : records) {
      if (record.path != "-" && same_file(record.path, output)) {
        throw UsageError(fmt::format("-o {}: this record is an input", printable(output)),
                         "choose another path with -o");
      }
    }
    if (records.size() > 1 && !is_page(output)) {
      throw UsageError(fmt::format("-o {}: only .html takes several records", printable(output)),
                       "give one record, or an .html file");
    }
  }
  check_outputs(flags.outputs);
}

// Flags of the page that would have no effect.
void require_page(const ReportFlags& flags) {
  if (std::any_of(flags.outputs.begin(), flags.outputs.end(), is_page)) return;
  const std::pair<const char*, bool> page_flags[] = {{"--title", flags.title.has_value()},
                                                     {"--theme", flags.theme.has_value()},
                                                     {"--sections", flags.sections.has_value()},
                                                     {"--max-points", flags.max_points.has_value()},
                                                     {"--open", flags.open}};
  for (const auto& [name, given] : page_flags) {
    if (!given) continue;
    throw UsageError(fmt::format("{} is about the HTML page, and none is asked for", name),
                     "add -o FILE.html");
  }
}

// In the page's order, whatever the order typed.
std::vector<std::string> sections_of(const std::string& text, std::size_t records) {
  const std::vector<std::string> known = section_names();
  const std::vector<std::string> chosen =
      select_names(parse_elements(text, "--sections"), known, "--sections");
  std::vector<std::string> sections;
  for (const std::string& name : known) {
    if (std::find(chosen.begin(), chosen.end(), name) == chosen.end()) continue;
    if (name == "history" && records < kRunsOfHistory) {
      if (chosen.size() > 1) continue;
      throw UsageError("--sections: a history needs three records or more",
                       "rooflash report A.json B.json C.json -o FILE.html");
    }
    sections.push_back(name);
  }
  return sections;
}

HtmlOptions page_options(const ReportFlags& flags, std::size_t records) {
  HtmlOptions options;
  options.title = flags.title.value_or("");
  options.theme = require_choice(flags.theme.value_or("auto"), "--theme", kThemes);
  if (flags.sections) options.sections = sections_of(*flags.sections, records);
  if (flags.max_points) {
    const std::int64_t points = parse_count(*flags.max_points, "--max-points");
    if (points < kLeastMaxPoints) {
      throw UsageError(fmt::format("--max-points: {} is below {}", points, kLeastMaxPoints));
    }
    options.max_points = static_cast<std::size_t>(points);
  }
  return options;
}

std::string html_page(const std::vector<Record>& records,
                      const std::vector<RecordReference>& references, HtmlOptions options) {
  std::vector<std::string> names;
  for (const RecordReference& reference : references) names.push_back(reference.label);
  const std::vector<ReportRun> runs = runs_to_report(records, names);
  for (std::size_t i = 1; i < records.size(); ++i) {
    options.comparisons.push_back(report_comparison(compare(records.front(), records[i], {}),
                                                    runs.front().name, runs[i].name));
  }
  if (records.size() >= kRunsOfHistory) options.history = report_history(runs);
  return html_report(runs, options);
}

std::string text_of(const Record& record, const std::string& format, const Context& context) {
  if (format == "md") return render_markdown(record);
  if (format == "csv") return render_csv(record);
  if (format == "json") return record_text(record);
  return render_table(record, table_options(context.color), noise_sentence(record));
}

int report(const Context& context, const ReportFlags& flags) {
  if (!flags.format.empty()) require_choice(flags.format, "--format", kFormats);
  if (flags.records.size() > 1 && (flags.format == "csv" || flags.format == "json")) {
    throw UsageError(fmt::format("--format {} takes one record", flags.format),
                     "give one record, or --format table or md");
  }
  const HtmlOptions options = page_options(flags, flags.records.size());
  require_page(flags);
  const std::vector<RecordReference> references = find_records(flags.records);
  std::vector<Record> records;
  for (const RecordReference& reference : references) {
    records.push_back(read_filtered(reference.path, flags.filters));
  }
  check_flags(flags, references);
  for (const std::string& output : flags.outputs) {
    if (is_page(output)) {
      write_file_atomic(output, html_page(records, references, options));
    } else {
      write_outputs(records.front(), {output});
    }
    if (!context.quiet) print_message("saved " + printable(output));
    if (flags.open && is_page(output)) open_file(output);
  }
  const bool text = !flags.format.empty() || (flags.outputs.empty() && !flags.plot);
  for (const Record& record : records) {
    if (text) print_result(text_of(record, flags.format, context));
    if (flags.plot) print_result(render_plot(record, table_options(context.color)));
  }
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("report", "a record as HTML, Markdown, CSV or a table");
  command->footer(
      "Examples: rooflash report out/a.json -o out/a.html --open\n"
      "          rooflash report before=@prev after=@last -o both.html   (compares them)\n"
      "          rooflash report nightly/*.json -o all.html   (their history)\n"
      "          rooflash report out/a.json --plot -f dtype:bf16");
  auto flags = std::make_shared<ReportFlags>();
  command->add_option("RECORD", flags->records, kRecordHelp)->required();
  add_repeatable(*command, "-o,--output", flags->outputs,
                 "FILE.html, .md, .csv or .json (repeatable); none: the table on stdout");
  add_repeatable(*command, "-f,--filter", flags->filters,
                 "only the rows that match: 'kernel:fa2 seqlen:>=4k -causal:true' (repeatable)");
  add_choice(*command, "--format", flags->format, kFormats, "on stdout");
  command->add_flag("--plot", flags->plot, "a roofline on stdout, in characters");
  const char* const kPage = "The HTML page";
  command->add_option("--title", flags->title, "default: suite and GPU")->group(kPage);
  command->add_option("--theme", flags->theme, "default auto")
      ->type_name(fmt::format("{}", fmt::join(kThemes, "|")))
      ->group(kPage);
  command
      ->add_option("--sections", flags->sections,
                   fmt::format("a list of {}; ^name leaves one out (default: all that apply)",
                               fmt::join(section_names(), ", ")))
      ->group(kPage);
  command
      ->add_option("--max-points", flags->max_points,
                   "thin the points of each chart to so many; tables keep all")
      ->group(kPage);
  command->add_flag("--open", flags->open, "show it in the browser, from a terminal")->group(kPage);
  command->callback(
      [&context, flags] { context.action = [&, flags] { return report(context, *flags); }; });
}

}  // namespace rooflash
