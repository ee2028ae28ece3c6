// The parts of the report that are text: verdict, summary, advice, environment, method. HTML
// fragments, everything from the records escaped.
#pragma once

#include <span>
#include <string>

#include "report/report_run.hpp"

namespace rooflash {

std::string default_title(std::span<const ReportRun> runs);  // plain text
// `has_summary`: the page has the section with the warnings.
std::string verdict_html(std::span<const ReportRun> runs, bool has_summary);
std::string summary_html(std::span<const ReportRun> runs);
std::string advice_html(std::span<const ReportRun> runs);
std::string environment_html(std::span<const ReportRun> runs);
std::string method_html(std::span<const ReportRun> runs);

}  // namespace rooflash
