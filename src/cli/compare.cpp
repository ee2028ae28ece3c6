// rooflash compare: records against the first, as tables. Judges, but never fails.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.hpp"
#include "cli/comparison.hpp"
#include "cli/comparison_table.hpp"
#include "cli/flags.hpp"
#include "cli/record_reference.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {
namespace {

struct CompareFlags {
  ComparisonFlags comparison;
  std::vector<std::string> filters;
  std::vector<std::string> records;
};

int compare_records(const Context& context, const CompareFlags& flags) {
  if (flags.records.size() < 2) {
    throw UsageError("compare needs two records or more", "rooflash compare BASE.json NEW.json");
  }
  const CompareRules rules = rules_of(flags.comparison);
  const std::vector<RecordReference> references = find_records(flags.records);
  std::vector<Record> records;
  for (const RecordReference& one : references) {
    records.push_back(read_filtered(one.path, flags.filters));
  }
  for (std::size_t i = 1; i < records.size(); ++i) {
    const Comparison comparison = compare(records.front(), records[i], rules);
    print_result(fmt::format("base {}  new {}: {}\n\n{}{}", printable(references.front().name()),
                             printable(references[i].name()), verdict_counts(comparison),
                             render_comparison(comparison, true, table_options(context.color)),
                             i + 1 < records.size() ? "\n" : ""));
    if (!context.quiet) print_comparison_warnings(comparison);
  }
  return 0;
}

}  // namespace

void add_compare(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand("compare", "records against the first, case by case");
  command->footer(
      "Examples: rooflash compare out/base.json out/new.json\n"
      "          rooflash compare before=@prev after=@last\n"
      "Exit code 0 whatever it finds; rooflash gate is the one that fails.");
  auto flags = std::make_shared<CompareFlags>();
  command
      ->add_option("RECORD", flags->records,
                   "the base, then what is compared with it; each as in rooflash report --help")
      ->required();
  add_comparison_flags(*command, flags->comparison);
  add_repeatable(*command, "-f,--filter", flags->filters,
                 "compare what matches: 'kernel:fa2 seqlen:>=4k -causal:true' (repeatable)");
  command->callback([&context, flags] {
    context.action = [&, flags] { return compare_records(context, *flags); };
  });
}

}  // namespace rooflash
