// What every gate does before it measures and after it judged: checks its flags, and prints and
// writes the result.
#pragma once

#include <string>

#include "cli/commands.hpp"
#include "cli/gate_ci.hpp"
#include "cli/gate_files.hpp"
#include "cli/gate_flags.hpp"
#include "gate/compare.hpp"

namespace rooflash {

// What judging needs.
struct Gate {
  const Context& context;
  const GateFlags& flags;
  CompareRules rules;
  GatePolicy policy;
  Ci ci = Ci::none;
  std::string junit;  // path; "" for none
};

// Checked before anything is measured: the choices, and the files that will be written. Throws
// UsageError.
Gate prepare_gate(const Context& context, const GateFlags& flags);

// Prints and writes the result, and gives its exit code. `promote` says what to do with cases that
// became faster.
int deliver(const Gate& gate, GateResult result, const std::string& promote);

}  // namespace rooflash
