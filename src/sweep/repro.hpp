// The command line that runs one case again.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

// "rooflash run --kernel fa2 --fwd --dtype bf16 ... --device cuda:0", every axis spelt out, so that
// it holds whatever the defaults become.
std::string repro_command(std::string_view kernel, const Problem& problem, std::string_view device);

// The words of that command, unquoted.
std::vector<std::string> repro_words(std::string_view kernel, const Problem& problem,
                                     std::string_view device);

}  // namespace rooflash
