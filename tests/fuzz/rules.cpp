// Rules of the gate, and what they set for a case.
#include <string_view>

#include "cli/gate_rules.hpp"
#include "core/error.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rooflash;
  CompareRules rules;
  try {
    parse_gate_rules({reinterpret_cast<const char*>(data), size}, "rules.json", rules);
  } catch (const UsageError&) {
    return 0;
  }
  CaseRules own;
  rules.exceptions(Row(), own);
  return 0;
}
