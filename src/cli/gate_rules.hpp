// --rules FILE: thresholds by filter.
//
//   { "defaults": { "threshold": "3%", "abs": "1us" },
//     "rules": [ { "filter": "seqlen:<1k", "threshold": "8%", "abs": "2us" },
//                { "filter": "kernel:naive", "time": "off" },
//                { "filter": "kernel:fa2", "figures": { "hbm_bytes": "2%", "registers": "off" } } ]
//                }
//
// All rules that match a case apply, in order: of two that set the same key the later one holds.
#pragma once

#include <string>
#include <string_view>

#include "gate/compare.hpp"

namespace rooflash {

// Puts the defaults of the file's text into `rules`, and its rules behind `rules.exceptions`.
// Throws UsageError "file:line: ..." on a key, a filter or a value that it does not know.
void parse_gate_rules(std::string_view text, std::string_view file, CompareRules& rules);
// The same of the file at `path`, which must be readable.
void load_gate_rules(const std::string& path, CompareRules& rules);

// A threshold as typed, "3%": above 0 and at most 100 %. Throws UsageError naming `flag`.
double parse_threshold(std::string_view text, std::string_view flag);

// The proposal of a calibration as the text of such a file: what is not gated well at `standard`.
struct ProposedRule {
  std::string filter;
  std::string key;    // "threshold" or "time"
  std::string value;  // "5%", "off"
};
std::string rules_text(double standard, const std::vector<ProposedRule>& proposed);

}  // namespace rooflash
