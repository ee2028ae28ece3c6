// Comparisons as text for the terminal.
#pragma once

#include <string>
#include <vector>

#include "gate/calibrate.hpp"
#include "gate/compare.hpp"
#include "report/table.hpp"

namespace rooflash {

// One line a case under a title per kind of problem, then the geometric mean. With `all` false the
// cases that are `same` are only counted. Ends with a newline.
std::string render_comparison(const Comparison& comparison, bool all, const TableOptions& options);

// The noise of each case, and the threshold that it allows.
std::string render_calibration(const std::vector<CaseNoise>& cases, double most,
                               const TableOptions& options);

// All that led to the verdict on one case: values, rules, intervals.
std::string explain_case(const CaseComparison& found);

}  // namespace rooflash
