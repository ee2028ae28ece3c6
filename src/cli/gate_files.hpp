// The result of a gate for other programs: JSON, JUnit and Markdown.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/exit_code.hpp"
#include "gate/compare.hpp"

namespace rooflash {

// Well under the 1 MiB that GitHub takes.
inline constexpr std::size_t kMaxSummaryBytes = std::size_t{512} * 1024;

struct GateResult {
  std::string mode;  // "records", "paired" or "baseline"
  std::string base;  // as named on the command line
  std::string candidate;
  std::string next;  // command that shows more
  Comparison comparison;
  ExitCode code = ExitCode::ok;
};

// "GATE PASSED", "GATE FAILED, INCOMPLETE".
std::string_view gate_headline(ExitCode code);

// "GATE FAILED: 1 slower, 22 same (exit 1)". Never of more than one line.
std::string gate_sentence(const GateResult& result);

// Verdicts from the one that weighs most; inside a verdict as in the comparison.
std::vector<const CaseComparison*> by_weight(const Comparison& comparison);

// "slower: 3.93 us to 7.86 us, +100.0%"
std::string case_message(const CaseComparison& one);

// Schema 1, docs/formats.md: what was compared, the environments' differences, every case and
// family with its figures. Ends with a newline.
std::string verdict_json(const GateResult& result);

// One suite a device class, one test a case: slower and wrong are failures; failed, gone and
// not-comparable errors; unsure and new pass and say so.
std::string verdict_junit(const GateResult& result);

// GitHub-flavoured Markdown of at most `max_bytes`: cases that changed first; what does not fit is
// counted.
std::string verdict_markdown(const GateResult& result, std::size_t max_bytes);

}  // namespace rooflash
