// docs/formats.md names every key of the schema, every value of its enumerations, and the texts
// that the sources write into the open lists.
#include <gtest/gtest.h>

#include <filesystem>
#include <regex>
#include <set>

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

const std::string kRoot = ROOFLASH_SOURCE_DIR;

std::string formats() {
  return read_text(kRoot + "/docs/formats.md");
}

// The first group of every match of `pattern` in the C++ sources below `folder`.
std::set<std::string> written(const std::string& folder, const std::string& pattern) {
  std::set<std::string> found;
  const std::regex expression(pattern);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kRoot + folder)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".cpp" && extension != ".cu") continue;
    const std::string text = read_text(entry.path().string());
    for (std::sregex_iterator it(text.begin(), text.end(), expression), end; it != end; ++it) {
      found.insert((*it)[1]);
    }
  }
  return found;
}

TEST(Documentation, NamesEveryKeyAndEnumerator) {
  const std::string text = formats();
  const Json schema = parse_json(read_text(kRoot + "/reports/record.schema.json"), "schema");
  int names = 0;
  for_each_name(schema, [&](const std::string& name) {
    ++names;
    EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
  });
  EXPECT_GT(names, 150);
}

TEST(Documentation, NamesWhatIsWrittenIntoTheOpenLists) {
  const std::string text = formats();
  const auto flags = written("/src", R"re(flags\.(?:emplace|push)_back\("([a-z0-9_]+)"\))re");
  const auto throttle = written("/src/gpu", R"re(0x[0-9a-f]+, "([a-z_]+)")re");
  const auto phases = written("/src/worker", R"re(\bphase\("([a-z]+)"\))re");
  EXPECT_GE(flags.size(), 6U);
  EXPECT_GE(throttle.size(), 6U);
  EXPECT_EQ(phases.size(), 5U);
  for (const auto& names : {flags, throttle, phases}) {
    for (const std::string& name : names) {
      EXPECT_NE(text.find("`" + name + "`"), std::string::npos) << name;
    }
  }
}

TEST(Documentation, NamesEveryColumnOfTheCsv) {
  const std::string text = formats();
  const std::string columns = text.substr(text.find("## CSV"));
  const auto names = written("/src/report", R"re(ROOFLASH_COLUMN\("([a-z0-9_]+)")re");
  EXPECT_GT(names.size(), 50U);
  for (const std::string& name : names) {
    EXPECT_TRUE(std::regex_search(columns, std::regex("\\b" + name + "\\b"))) << name;
  }
}

}  // namespace
}  // namespace rooflash
