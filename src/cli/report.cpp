// rooflash report: records to a table, HTML, Markdown or CSV.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/comparison.hpp"
#include "cli/flags.hpp"
#include "cli/outputs.hpp"
#include "cli/report_comparison.hpp"
#include "cli/sweep_flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "report/formats.hpp"
#include "report/html.hpp"
#include "report/plot.hpp"
#include "report/table.hpp"

namespace rooflash {
namespace {

const std::vector<std::string> kFormats = {"table", "md", "csv", "json"};
const std::vector<std::string> kThemes = {"auto", "light", "dark"};

struct ReportFlags {
  std::vector<std::string> records;
  std::vector<std::string> outputs;
  std::vector<std::string> filters;
  std::string title;
  std::string theme = "auto";
  std::string format;  // "" prints the table where nothing else is asked for
  bool plot = false;
};

// Refuses what would fail, or overwrite a record that is read, before anything is written.
void check_flags(const ReportFlags& flags) {
  for (const std::string& output : flags.outputs) {
    for (const std::string& record : flags.records) {
      if (record != "-" && same_file(record, output)) {
        throw UsageError(fmt::format("-o {}: this record is an input", printable(output)),
                         "choose another path with -o");
      }
    }
    if (flags.records.size() > 1 && !output.ends_with(".html")) {
      throw UsageError(fmt::format("-o {}: only .html takes several records", printable(output)),
                       "give one record, or an .html file");
    }
  }
  check_outputs(flags.outputs);
}

std::string html_page(const std::vector<Record>& records, const ReportFlags& flags) {
  HtmlOptions options;
  options.title = flags.title;
  options.theme = flags.theme;
  for (std::size_t i = 1; i < records.size(); ++i) {
    options.comparisons.push_back(report_comparison(compare(records.front(), records[i], {}),
                                                    "run 1", fmt::format("run {}", i + 1)));
  }
  return html_report(records, options);
}

std::string text_of(const Record& record, const std::string& format, const Context& context) {
  if (format == "md") return render_markdown(record);
  if (format == "csv") return render_csv(record);
  if (format == "json") return record_text(record);
  return render_table(record, table_options(context.color));
}

int report(const Context& context, const ReportFlags& flags) {
  require_choice(flags.theme, "--theme", kThemes);
  if (!flags.format.empty()) require_choice(flags.format, "--format", kFormats);
  if (flags.records.size() > 1 && (flags.format == "csv" || flags.format == "json")) {
    throw UsageError(fmt::format("--format {} takes one record", flags.format),
                     "give one record, or --format table or md");
  }
  std::vector<Record> records;
  for (const std::string& path : flags.records) {
    records.push_back(read_filtered(path, flags.filters));
  }
  check_flags(flags);
  for (const std::string& output : flags.outputs) {
    if (output.ends_with(".html")) {
      write_file_atomic(output, html_page(records, flags));
    } else {
      write_outputs(records.front(), {output});
    }
    if (!context.quiet) print_message("saved " + printable(output));
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
      "Examples: rooflash report out/a.json -o out/a.html\n"
      "          rooflash report out/base.json out/new.json -o out/both.html   (compares them)\n"
      "          rooflash report out/a.json --plot -f dtype:bf16");
  auto flags = std::make_shared<ReportFlags>();
  command->add_option("RECORD", flags->records, "records of rooflash run; - reads stdin")
      ->required();
  add_repeatable(*command, "-o,--output", flags->outputs,
                 "FILE.html, .md, .csv or .json (repeatable); none: the table on stdout");
  add_repeatable(*command, "-f,--filter", flags->filters,
                 "only the rows that match: 'kernel:fa2 seqlen:>=4k -causal:true' (repeatable)");
  add_choice(*command, "--format", flags->format, kFormats, "on stdout");
  command->add_flag("--plot", flags->plot, "a roofline on stdout, in characters");
  command->add_option("--title", flags->title, "of the HTML report");
  add_choice(*command, "--theme", flags->theme, kThemes, "of the HTML report (default auto)");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return report(context, *flags); }; });
}

}  // namespace rooflash
