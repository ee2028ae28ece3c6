// rooflash export: records in the formats of other tools.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/outputs.hpp"
#include "cli/record_reference.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "export/formats.hpp"
#include "model/suggest.hpp"
#include "record/reader.hpp"
#include "report/formats.hpp"

namespace rooflash {
namespace {

struct Format {
  const char* name;
  Export (*of_one)(const NamedRecord& input);  // nullptr: takes several
  Export (*of_several)(std::span<const NamedRecord> inputs);
};

constexpr Format kFormats[] = {
    {"csv",
     [](const NamedRecord& input) {
       return Export{render_csv(input.record), {}};
     },
     nullptr},
    {"md",
     [](const NamedRecord& input) {
       return Export{render_markdown(input.record), {}};
     },
     nullptr},
    {"junit", nullptr, export_junit},
    {"openmetrics", export_openmetrics, nullptr},
    {"bencher", export_bencher, nullptr},
    {"github-action-benchmark", export_github_action_benchmark, nullptr},
    {"otava-csv", nullptr, export_otava_csv},
    {"chrome-trace", nullptr, export_chrome_trace},
};

struct ExportFlags {
  std::vector<std::string> records;
  std::string format;
  std::string output;
};

std::vector<std::string> format_names() {
  std::vector<std::string> names;
  for (const Format& format : kFormats) names.emplace_back(format.name);
  return names;
}

const Format& format_named(const std::string& name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return format;
  }
  throw UsageError(fmt::format("--format: there is no format '{}'", printable(name)),
                   suggest(name, format_names()));
}

void check_inputs(const std::vector<RecordReference>& records, const Format& format) {
  if (format.of_one != nullptr && records.size() > 1) {
    throw UsageError(
        fmt::format("--format {} takes one record, not {}", format.name, records.size()),
        "export them one by one");
  }
  for (std::size_t i = 0; i < records.size(); ++i) {
    for (std::size_t before = 0; before < i; ++before) {
      if (same_file(records[before].path, records[i].path)) {
        throw UsageError(fmt::format("{} is given twice", printable(records[i].text)));
      }
    }
  }
}

int export_records(const Context& context, const ExportFlags& flags) {
  const Format& format = format_named(flags.format);
  const std::vector<RecordReference> records = find_records(flags.records);
  check_inputs(records, format);
  std::vector<NamedRecord> inputs;
  for (const RecordReference& one : records) inputs.push_back({one.name(), read_record(one.path)});
  const Export made =
      format.of_one != nullptr ? format.of_one(inputs.front()) : format.of_several(inputs);
  if (!flags.output.empty()) check_output_file(flags.output, paths_of(records));
  if (!context.quiet) {
    for (const std::string& left_out : made.left_out) print_message("left out: " + left_out);
  }
  deliver_text(context, flags.output, made.text);
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("export", "records in the formats of other tools");
  command->footer(
      "Example: rooflash export out/a.json --format chrome-trace -o out/a.trace.json\n"
      "junit, otava-csv and chrome-trace take several records. What each format is: "
      "docs/formats.md");
  auto flags = std::make_shared<ExportFlags>();
  command->add_option("RECORD", flags->records, kRecordHelp)->required();
  add_choice(*command, "--format", flags->format, format_names(), "what to write")->required();
  command->add_option("-o,--output", flags->output, "the file; none: stdout");
  command->callback([&context, flags] {
    context.action = [&, flags] { return export_records(context, *flags); };
  });
}

}  // namespace rooflash
