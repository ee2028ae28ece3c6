#include "record/json.hpp"

#include <algorithm>

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

// "line 3, column 7" of byte `offset` (from 0).
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_start + 1);
}

// Watches the parser's events for a key that an object holds twice, which the parser would let
// pass with the last value winning.
class DuplicateKeys {
 public:
  void event(Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
        keys_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        keys_.pop_back();
        break;
      case Json::parse_event_t::key: {
        const std::string& key = parsed.get_ref<const std::string&>();
        std::vector<std::string>& seen = keys_.back();
        if (found_.empty() && std::find(seen.begin(), seen.end(), key) != seen.end()) {
          found_ = printable(key, 60);
        }
        seen.push_back(key);
        break;
      }
      default:
        break;
    }
  }
  const std::string& found() const { return found_; }

 private:
  std::vector<std::vector<std::string>> keys_;
  std::string found_;
};

}  // namespace

Json to_json(const Problem& problem) {
  return JsonWriter::encode(problem);
}
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

Problem problem_from_json(const Json& json, std::string_view place) {
  Problem problem = read<Problem>(json, place);
  const std::string reason = invalid_reason(problem);
  if (!reason.empty()) fail_at(Place{nullptr, place}, reason);
  return problem;
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
  const Place root{nullptr, prefix};
  if (!json.is_object()) fail_type(root, "an object", json);
  // The version first: another schema may differ in every other key.
  if (const auto schema = json.find("schema"); schema != json.end() && *schema != kRecordSchema) {
    throw UsageError(prefix + "schema " + printable(schema->dump(), 40) +
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

Json parse_json(std::string_view text, std::string_view place) {
  const std::string prefix = place.empty() ? "" : std::string(place) + ": ";
  DuplicateKeys duplicates;
  Json json;
  try {
    json = Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
      duplicates.event(event, parsed);
      return true;
    });
  } catch (const Json::parse_error& error) {
    const std::size_t offset = error.byte == 0 ? 0 : error.byte - 1;
    const bool cut = offset >= text.size();
    throw UsageError(prefix + "not valid JSON at " + line_and_column(text, offset) +
                         (cut ? ": the text ends too early" : ""),
                     "JSON allows no comments, trailing commas, NaN or Infinity");
  } catch (const Json::exception&) {
    throw UsageError(prefix + "a number is outside the range of a double");
  }
  if (!duplicates.found().empty()) {
    throw UsageError(prefix + "the key \"" + duplicates.found() + "\" stands twice in one object");
  }
  return json;
}

}  // namespace rooflash
