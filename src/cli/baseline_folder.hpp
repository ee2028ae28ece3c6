// Stored baselines as `gate` and `baseline` use them: where they lie, and why one is not there.
#pragma once

#include <string>
#include <vector>

#include "gate/baseline.hpp"
#include "gate/compare.hpp"

namespace rooflash {

// `text` as typed, else ROOFLASH_BASELINE_DIR, else "baselines".
std::string baseline_folder(const std::string& text);

// Throws Error(not_comparable) where there is none: no such name, none for this GPU, none of this
// suite; the hint says what there is.
BaselineFile find_baseline(const std::string& folder, const std::string& name,
                           const std::string& device_class, const std::string& suite);

// `candidate` against the baselines of its devices. Throws what find_baseline() throws, and
// Error(not_comparable) for another seed.
Comparison compare_with_baseline(const std::string& folder, const std::string& name,
                                 const Record& candidate, const std::vector<std::string>& filters,
                                 const CompareRules& rules);

}  // namespace rooflash
