// docs/formats.md names every key of the schema and every value of its enumerations.
#include <gtest/gtest.h>

#include "record/json.hpp"
#include "record/reader.hpp"

namespace rooflash {
namespace {

using Json = nlohmann::ordered_json;

// Calls `visit` with each property name and each enumerator below `schema`.
template <class Visit>
void for_each_name(const Json& schema, const Visit& visit) {
  if (!schema.is_structured()) return;
  if (schema.is_object()) {
    for (const auto& [keyword, rule] : schema.items()) {
      if (keyword == "properties") {
        for (const auto& [key, value] : rule.items()) visit(key);
      }
      if (keyword == "enum") {
        for (const std::string value : rule) visit(value);
      }
    }
  }
  for (const Json& child : schema) for_each_name(child, visit);
}

TEST(Documentation, NamesEveryKeyAndEnumerator) {
  const std::string root = ROOFLASH_SOURCE_DIR;
  const std::string text = read_text(root + "/docs/formats.md");
  const Json schema = parse_json(read_text(root + "/reports/record.schema.json"), "schema");
  int names = 0;
  for_each_name(schema, [&](const std::string& name) {
    ++names;
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  });
  EXPECT_GT(names, 150);
}

}  // namespace
}  // namespace rooflash
