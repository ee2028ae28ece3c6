// The static and the counter tier: figures that hardly vary, so that one round decides.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "gate/match.hpp"

namespace rooflash {

enum class Tier { resources, counters };

struct FigureChange {
  std::string name;  // "spill_bytes", "hbm_bytes"
  double base = 0;   // median over the rows
  double candidate = 0;
  double allowed = 0;  // increase that is no change
  bool is_worse() const { return candidate - base > allowed; }
  bool is_better() const { return base - candidate > allowed; }
};

// Relative increase allowed of a figure, by its name, in place of the usual one; empty: the figure
// is not judged.
using FigureLimits = std::map<std::string, OptDouble>;

// The figures of a tier that both sides have. resources: registers, spill_bytes, smem_bytes,
// code_bytes. counters: hbm_bytes and tensor_ops; on simulated rows the predicted HBM bytes.
std::vector<FigureChange> figure_changes(Tier tier, const Match& match,
                                         const FigureLimits& limits = {});

std::vector<std::string> figure_names();

}  // namespace rooflash
