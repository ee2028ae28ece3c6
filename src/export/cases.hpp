// What the exports share: the cases of a record, their names, and what was left out.
#pragma once

#include <string>
#include <vector>

#include "export/formats.hpp"
#include "history/series.hpp"

namespace rooflash {

// One point a case, class of device and measure. Throws UsageError as SeriesBuilder does.
std::vector<Series> cases_of(const NamedRecord& input);

// "fa2/fwd/.../causal @ NVIDIA H200, 132 SMs": never depends on what else is in the record, so that
// a tracker meets the same name in each run. Printable.
std::string case_name(const SeriesKey& key);

// "4 rows of a.json have no time: 3 unsupported, 1 implausible"; none where every row has one.
std::vector<std::string> rows_left_out(const NamedRecord& input);

}  // namespace rooflash
