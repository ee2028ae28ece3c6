// What the flags of several commands share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace rooflash {

// A flag that may be given several times and takes one word each time, so that the words after it
// stay what they are (`report a.json -o a.html b.json` reads two records).
CLI::Option* add_repeatable(CLI::App& app, const std::string& names,
                            std::vector<std::string>& values, const std::string& help);

// A flag whose value is one of `choices`, which its help and the shells' completion list. Parsing
// does not check it: require_choice() of cli/sweep_flags.hpp does, with the flag's name.
CLI::Option* add_choice(CLI::App& app, const std::string& names, std::string& value,
                        const std::vector<std::string>& choices, const std::string& help);

// A time limit above 0 and at most a day, in seconds. Throws UsageError naming `flag`.
double parse_limit(std::string_view text, std::string_view flag);

}  // namespace rooflash
