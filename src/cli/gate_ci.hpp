// --ci: what a gate leaves for the CI system that runs it.
#pragma once

#include <string>

#include "cli/gate_files.hpp"

namespace rooflash {

enum class Ci { none, github, gitlab };

// none, github, gitlab, or auto: what the environment says. Throws UsageError.
Ci choose_ci(const std::string& text);

// GitHub: annotations on stdout (at most ten of a kind, which is all that it shows), the step
// summary, and the outputs `verdict`, `exit_code` and `slower`. GitLab takes the JUnit file, which
// is the caller's to write. Throws UsageError where a file of GitHub's cannot be written.
void report_to_ci(Ci ci, const GateResult& result);

// GitHub's workflow commands for `result`, one a line.
std::string github_annotations(const GateResult& result);

}  // namespace rooflash
