#include "export/cases.hpp"

#include <fmt/format.h>

#include <map>

#include "core/units.hpp"

namespace rooflash {
namespace {

std::string why_without_time(const Row& row) {
  if (row.status != Status::ok) return std::string(to_string(row.status));
  return row.time_us ? "implausible" : "not timed";
}

}  // namespace

std::vector<Series> cases_of(const NamedRecord& input) {
  SeriesBuilder builder;
  builder.add(input.record, input.name);
  return builder.take();
}

std::string case_name(const SeriesKey& key) {
  std::string name = key.case_id + " @ " + key.device_class;
  // Ways of measuring that are not the default are other figures.
  if (key.l2 != "cold") name += ", " + key.l2 + " L2";
  if (key.power != "burst") name += ", " + key.power + " power";
  if (key.measure == Measure::quantize_us) name += ", quantising";
  return printable(name, std::string::npos);
}

std::vector<std::string> rows_left_out(const NamedRecord& input) {
  std::map<std::string, int> reasons;
  int rows = 0;
  for (const Row& row : input.record.rows) {
    if (has_usable_time(row)) continue;
    ++reasons[why_without_time(row)];
    ++rows;
  }
  if (rows == 0) return {};
  std::string text = fmt::format("{} of the {} rows of {} have no usable time:", rows,
                                 input.record.rows.size(), printable(input.name));
  for (const auto& [reason, count] : reasons) {
    text += fmt::format("{} {} {}", &reason == &reasons.begin()->first ? "" : ",", count, reason);
  }
  return {text};
}

}  // namespace rooflash
