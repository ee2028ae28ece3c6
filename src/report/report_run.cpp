#include "report/report_run.hpp"

#include <fmt/format.h>

namespace rooflash {

Detectable ReportRun::detectable_of(const Row& row) const {
  const auto index = static_cast<std::size_t>(&row - record->rows.data());
  return index < detectable.size() ? detectable[index] : Detectable{{}, "not computed"};
}

std::vector<ReportRun> report_runs(std::span<const Record> records) {
  std::vector<ReportRun> runs;
  for (const Record& record : records) {
    runs.push_back({&record, fmt::format("run {}", runs.size() + 1)});
  }
  return runs;
}

}  // namespace rooflash
