// What runs one case again: its axes, and the command line.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

// The axes of one case by name, every one spelt out, as sweep/axes.hpp takes them:
// {"kernel", "fa2"}, {"pass", "fwd"}, ... The SRAM of a simulated GPU is no axis.
std::vector<std::pair<std::string, std::string>> case_axes(std::string_view kernel,
                                                           const Problem& problem);

// "rooflash run --kernel fa2 --fwd --dtype bf16 ... --device cuda:0", every axis spelt out, so that
// it holds whatever the defaults become.
std::string repro_command(std::string_view kernel, const Problem& problem, std::string_view device);

// The words of that command, unquoted.
std::vector<std::string> repro_words(std::string_view kernel, const Problem& problem,
                                     std::string_view device);

}  // namespace rooflash
