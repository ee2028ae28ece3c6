// Names of metrics as people type them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "measure/cupti_api.hpp"

namespace rooflash {

// Those of `names` that are no metric of the chip, each with what is wrong and, where one is near,
// the name that was meant. Needs no GPU. Throws CounterFailure where CUPTI cannot say.
std::map<std::string, std::string> refused_metrics(const CuptiApi& api, const std::string& chip,
                                                   const std::vector<std::string>& names);

}  // namespace rooflash
