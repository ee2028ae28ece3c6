// rooflash list metrics: what can be counted on a chip. Needs neither a GPU nor CUPTI.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/terminal.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"
#include "profile/metric_sets.hpp"

namespace rooflash {
namespace {

std::string set_text(const MetricSet& set) {
  std::string text = fmt::format("\n{}: {}\n", set.name, set.summary);
  for (const MetricGroup& group : set.groups) {
    for (const Metric& metric : group) {
      text += fmt::format("  {}  {}  [{}]\n      {}\n", metric.id, metric.name, metric.unit,
                          metric.meaning);
    }
  }
  return text;
}

int list_metrics(const std::string& chip) {
  const std::vector<MetricSet> sets = metric_sets(chip);
  const std::vector<std::string>& known = known_chips();
  if (sets.empty()) {
    throw UsageError(fmt::format("--chip: there are no metric names for '{}'", printable(chip)),
                     suggest(chip, known));
  }
  std::vector<std::string> others;
  std::copy_if(known.begin(), known.end(), std::back_inserter(others),
               [&](const std::string& one) { return one != chip; });
  const bool checked = others.size() < known.size();
  std::string text = fmt::format(
      "{}{}; other chips: --chip {}\n`rooflash profile CASE --set NAME` collects a set, `--metrics "
      "A,B` any metric by the name in the second column.\n",
      chip, checked ? "" : " (names taken from its generation, not checked)",
      fmt::join(others, ", "));
  text += set_text(run_metric_set(chip));
  for (const MetricSet& set : sets) text += set_text(set);
  print_result(text);
  return 0;
}

}  // namespace

void add_list_metrics(CLI::App& list, Context& context) {
  CLI::App* command =
      list.add_subcommand("metrics", "what can be counted on a chip, and its meaning");
  auto chip = std::make_shared<std::string>(known_chips().front());
  add_choice(*command, "--chip", *chip, known_chips(),
             "CUPTI's name of the chip (default GH100: H100, H200, GH200)");
  command->callback([&context, chip] { context.action = [chip] { return list_metrics(*chip); }; });
}

}  // namespace rooflash
