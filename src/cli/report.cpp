// rooflash report: records to a table, HTML, Markdown or CSV.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outputs.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "report/html.hpp"
#include "report/table.hpp"

namespace rooflash {
namespace {

struct ReportFlags {
  std::vector<std::string> records;
  std::vector<std::string> outputs;
  std::string title;
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

int report(const Context& context, const ReportFlags& flags) {
  std::vector<Record> records;
  for (const std::string& path : flags.records) records.push_back(read_record(path));
  check_flags(flags);
  for (const std::string& output : flags.outputs) {
    if (output.ends_with(".html")) {
      HtmlOptions options;
      options.title = flags.title;
      write_file_atomic(output, html_report(records, options));
    } else {
      write_outputs(records.front(), {output});
    }
    if (!context.quiet) print_message("saved " + printable(output));
  }
  if (flags.outputs.empty()) {
    for (const Record& record : records) {
      print_result(render_table(record, table_options(context.color)));
    }
  }
  return 0;
}

}  // namespace

void add_report(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("report", "a record as HTML, Markdown, CSV or a table");
  command->footer("Example: rooflash report out/a.json -o out/a.html");
  auto flags = std::make_shared<ReportFlags>();
  command->add_option("RECORD", flags->records, "records of rooflash run; - reads stdin")
      ->required();
  add_repeatable(*command, "-o,--output", flags->outputs,
                 "FILE.html, .md, .csv or .json (repeatable); none: the table on stdout");
  command->add_option("--title", flags->title, "of the HTML report");
  command->callback(
      [&context, flags] { context.action = [&, flags] { return report(context, *flags); }; });
}

}  // namespace rooflash
