// From a case id back to its kernel and problem, and from a problem to axes.
#pragma once

#include <string>
#include <string_view>

#include "core/problem.hpp"
#include "sweep/axes.hpp"

namespace rooflash {

struct NamedCase {
  std::string kernel;
  Problem problem;
};

// "fa2/fwd/bf16/b4.h16.kv16/q8192.k8192/d128/causal", as case_id() writes it and no other way.
// Throws UsageError with the part that is wrong; the kernel's name is not looked up.
NamedCase parse_case_id(std::string_view text);

// Axes whose only problem is `problem`, on `kernel`. An axis that another one implies (queries as
// many as keys, a whole number of heads to a KV head) is left to follow it.
Axes axes_of(const NamedCase& named);

}  // namespace rooflash
