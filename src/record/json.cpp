#include "record/json.hpp"

#include "core/version.hpp"
#include "record/check.hpp"
#include "record/describe.hpp"

namespace rooflash {
namespace {

template <class T>
T read(const Json& json, std::string_view place) {
  T value{};
  JsonReader::decode(json, Place{nullptr, place}, value);
  return value;
}

}  // namespace

Json to_json(const Row& row) {
  return JsonWriter::encode(row);
}
Json to_json(const DeviceInfo& device) {
  return JsonWriter::encode(device);
}
Json to_json(const Environment& environment) {
  return JsonWriter::encode(environment);
}
Json to_json(const Ceilings& ceilings) {
  return JsonWriter::encode(ceilings);
}
Json to_json(const Record& record) {
  return JsonWriter::encode(record);
}

Row row_from_json(const Json& json, std::string_view place) {
  Row row = read<Row>(json, place);
  check_row(row, place);
  return row;
}

DeviceInfo device_from_json(const Json& json, std::string_view place) {
  return read<DeviceInfo>(json, place);
}

Environment environment_from_json(const Json& json, std::string_view place) {
  return read<Environment>(json, place);
}

Ceilings ceilings_from_json(const Json& json, std::string_view place) {
  return read<Ceilings>(json, place);
}

Record record_from_json(const Json& json, std::string_view place) {
  const std::string prefix = place.empty() ? "" : std::string(place) + ": ";
  if (!json.is_object() || !json.contains("schema")) {
    throw UsageError(
        prefix + "no record: " + (json.is_object() ? "it has no schema" : "it is no JSON object"),
        "name a file that rooflash run -o FILE.json wrote");
  }
  // The version first: another schema may differ in every other key.
  if (const Json& schema = json["schema"]; schema != kRecordSchema) {
    throw UsageError(prefix + "schema " + printable(schema.dump(), 40) +
                         " is not one this version reads (" + std::to_string(kRecordSchema) + ")",
                     "write the record anew, or read it with the version that wrote it");
  }
  Record record = read<Record>(json, prefix);
  for (std::size_t i = 0; i < record.rows.size(); ++i) {
    check_row(record.rows[i], prefix + "rows[" + std::to_string(i) + "]");
  }
  check_record(record, place);
  return record;
}

std::string dump_line(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string to_json_line(const Row& row) {
  return dump_line(to_json(row));
}

}  // namespace rooflash
