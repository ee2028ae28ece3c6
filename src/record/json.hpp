// Record types to and from JSON. The one place that knows the keys is record/describe.hpp; the
// shape is documented in docs/formats.md and reports/record.schema.json.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/record.hpp"

namespace rooflash {

// Numbers that are not finite become null; every key is written, in a fixed order.
nlohmann::ordered_json to_json(const Row& row);
nlohmann::ordered_json to_json(const DeviceInfo& device);
nlohmann::ordered_json to_json(const Environment& environment);
nlohmann::ordered_json to_json(const Ceilings& ceilings);
nlohmann::ordered_json to_json(const Record& record);

// Unknown keys are ignored. A missing key, another type, an unknown enumerator or a contradiction
// (record/check.hpp) throws UsageError that begins with `place` and the path below it
// ("out.json: rows[12]" gives "out.json: rows[12].time_us.median: expected a number, ...").
Row row_from_json(const nlohmann::ordered_json& json, std::string_view place);
DeviceInfo device_from_json(const nlohmann::ordered_json& json, std::string_view place);
Environment environment_from_json(const nlohmann::ordered_json& json, std::string_view place);
Ceilings ceilings_from_json(const nlohmann::ordered_json& json, std::string_view place);
Record record_from_json(const nlohmann::ordered_json& json, std::string_view place);

// `json` on one line without a line end; invalid UTF-8 is replaced by U+FFFD. Canonical: parsing
// the text and dumping it again gives the same bytes.
std::string dump_line(const nlohmann::ordered_json& json);
std::string to_json_line(const Row& row);

// Parses `text` strictly: one JSON value, no NaN, no duplicate keys. Throws UsageError that begins
// with `place` and ends with line and column.
nlohmann::ordered_json parse_json(std::string_view text, std::string_view place);

}  // namespace rooflash
