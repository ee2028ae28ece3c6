// Suites: JSON files that expand to cases.
//
//   { "summary": "one line", "grids": [ { "kernel": "naive,fa2", "seqlen": "512:16k:x2" }, ... ] }
//
// The keys of a grid are the axis names of axes.hpp; a value is a string in the list grammar, a
// number, true or false, or an array of these.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sweep/axes.hpp"

namespace rooflash {

struct Suite {
  std::string name;
  std::string summary;
  std::vector<Axes> grids;
};

// Names of the built-in suites, sorted.
std::vector<std::string> suite_names();

// A built-in suite by name, or else the file at that path. Throws UsageError: unknown name (with a
// suggestion), unreadable file, or file:line and what is wrong there.
Suite load_suite(std::string_view name_or_path);

Suite parse_suite(std::string_view text, std::string_view file, std::string name);

}  // namespace rooflash
