#include "cli/flags.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>

#include "core/error.hpp"
#include "core/units.hpp"

namespace rooflash {

CLI::Option* add_repeatable(CLI::App& app, const std::string& names,
                            std::vector<std::string>& values, const std::string& help) {
  return app.add_option(names, values, help)
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help) {
  return app.add_option(names, value, help)->type_name(fmt::format("{}", fmt::join(choices, "|")));
}

double parse_limit(std::string_view text, std::string_view flag) {
  constexpr double kDay = 86400;
  const double seconds = parse_seconds(text, flag);
  if (!(seconds > 0) || seconds > kDay) {
    throw UsageError(
        fmt::format("{}: '{}' is not above 0 and at most a day", flag, printable(text)));
  }
  return seconds;
}

}  // namespace rooflash
