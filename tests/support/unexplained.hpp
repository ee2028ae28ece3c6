// Which null figures of a row have no reason.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "record/json.hpp"

namespace rooflash {

// Paths of the null values of an ok row that neither `missing` (at the path or its parent) nor the
// status of its own section explains.
inline std::vector<std::string> unexplained_nulls(const Row& row) {
  const nlohmann::ordered_json json = to_json(row);
  std::vector<std::string> found;
  const auto look = [&](const std::string& path, const std::string& section,
                        const nlohmann::ordered_json& value) {
    const bool explained = row.missing.contains(path) || row.missing.contains(section) ||
                           (section == "counters" && row.counters.status != "ok") ||
                           (section == "verify" && row.verify.status == "skipped") ||
                           path == "problem.window" ||  // null is a value there
                           path == "memory.needed_bytes" || path == "memory.free_bytes";
    if (value.is_null() && !explained) found.push_back(path);
  };
  for (const auto& [key, value] : json.items()) {
    look(key, key, value);
    if (!value.is_object()) continue;
    for (const auto& [inner, leaf] : value.items()) look(key + "." + inner, key, leaf);
  }
  return found;
}

}  // namespace rooflash
