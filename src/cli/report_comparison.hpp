// What gate/ finds between two records, as the report shows it.
#pragma once

#include <string>

#include "gate/compare.hpp"
#include "report/comparison.hpp"

namespace rooflash {

RecordComparison report_comparison(const Comparison& comparison, std::string base_name,
                                   std::string new_name);

}  // namespace rooflash
