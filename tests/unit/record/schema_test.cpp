// What is written satisfies reports/record.schema.json, and the schema names every key written.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>

#include "record/json.hpp"
#include "record/reader.hpp"
#include "record/writer.hpp"
#include "sample_record.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

// The keywords of JSON Schema that the record's schema uses. Stricter in one place: a key that
// `properties` does not name is a fault unless `additionalProperties` allows it.
class SchemaCheck {
 public:
  explicit SchemaCheck(Json schema) : root_(std::move(schema)) {}

  // "" where `json` satisfies the schema, else the first fault.
  std::string fault(const Json& json) const { return fault(json, root_, "$"); }

 private:
  static bool has_type(const Json& json, const std::string& type) {
    if (type == "null") return json.is_null();
    if (type == "boolean") return json.is_boolean();
    if (type == "integer") return json.is_number_integer();
    if (type == "number") return json.is_number();
    if (type == "string") return json.is_string();
    if (type == "array") return json.is_array();
    return type == "object" && json.is_object();
  }

  std::string fault(const Json& json, const Json& schema, const std::string& place) const {
    for (const auto& [keyword, rule] : schema.items()) {
      std::string found;
      if (keyword == "$ref") {
        found = fault(json, root_.at(Json::json_pointer(rule.get<std::string>().substr(1))), place);
      } else if (keyword == "type") {
        bool any = false;
        for (const Json& type : rule.is_array() ? rule : Json::array({rule})) {
          any = any || has_type(json, type);
        }
        if (!any) found = place + ": type";
      } else if (keyword == "enum") {
        if (std::find(rule.begin(), rule.end(), json) == rule.end()) found = place + ": enum";
      } else if (keyword == "const") {
        if (json != rule) found = place + ": const";
      } else if (json.is_object()) {
        found = object_fault(json, keyword, rule, place);
      } else if (json.is_array()) {
        found = array_fault(json, keyword, rule, place);
      } else if (json.is_number()) {
        const double value = json;
        if (keyword == "minimum" && value < rule) found = place + ": minimum";
        if (keyword == "exclusiveMinimum" && value <= rule) found = place + ": exclusiveMinimum";
      } else if (json.is_string()) {
        const std::string text = json;
        if (keyword == "minLength" && text.size() < rule) found = place + ": minLength";
        if (keyword == "pattern" && !std::regex_search(text, std::regex(rule.get<std::string>()))) {
          found = place + ": pattern";
        }
      }
      if (!found.empty()) return found;
    }
    return "";
  }

  std::string object_fault(const Json& json, const std::string& keyword, const Json& rule,
                           const std::string& place) const {
    if (keyword == "required") {
      for (const std::string key : rule) {
        if (!json.contains(key)) return place + "." + key + ": required";
      }
    } else if (keyword == "additionalProperties") {
      for (const auto& [key, value] : json.items()) {
        const std::string found = fault(value, rule, place + "." + key);
        if (!found.empty()) return found;
      }
    } else if (keyword == "properties") {
      for (const auto& [key, value] : json.items()) {
        if (!rule.contains(key)) return place + "." + key + ": not in the schema";
        const std::string found = fault(value, rule[key], place + "." + key);
        if (!found.empty()) return found;
      }
    }
    return "";
  }

  std::string array_fault(const Json& json, const std::string& keyword, const Json& rule,
                          const std::string& place) const {
    if (keyword == "minItems" && json.size() < rule) return place + ": minItems";
    if (keyword == "maxItems" && json.size() > rule) return place + ": maxItems";
    if (keyword != "items") return "";
    for (std::size_t i = 0; i < json.size(); ++i) {
      const std::string found = fault(json[i], rule, place + "[" + std::to_string(i) + "]");
      if (!found.empty()) return found;
    }
    return "";
  }

  Json root_;
};

SchemaCheck record_schema() {
  return SchemaCheck(
      Json::parse(read_text(std::string(ROOFLASH_SOURCE_DIR) + "/reports/record.schema.json")));
}

TEST(RecordSchema, AcceptsWhatIsWritten) {
  const SchemaCheck schema = record_schema();
  EXPECT_EQ(schema.fault(Json::parse(record_text(sample_record()))), "");
  Record empty = sample_record();
  empty.rows.clear();
  EXPECT_EQ(schema.fault(Json::parse(record_text(empty))), "");
}

TEST(RecordSchema, RefusesFaults) {
  const SchemaCheck schema = record_schema();
  const Json good = to_json(sample_record());
  const auto fault = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return schema.fault(bad);
  };
  EXPECT_EQ(fault("/schema", 2), "$.schema: const");
  EXPECT_EQ(fault("/rows/0/status", "fine"), "$.rows[0].status: enum");
  EXPECT_EQ(fault("/rows/0/problem/batch", 0), "$.rows[0].problem.batch: minimum");
  EXPECT_EQ(fault("/rows/0/time_us/median", nullptr), "$.rows[0].time_us.median: type");
  EXPECT_EQ(fault("/rows/0/definition_hash", "zz"), "$.rows[0].definition_hash: pattern");
  EXPECT_EQ(fault("/rows/0/surprise", 1), "$.rows[0].surprise: not in the schema");
}

}  // namespace
}  // namespace rooflash
