#include "model/strict_json.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

std::string error_of(std::string_view text) {
  try {
    parse_strict_json(text, "f.json");
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no error";
}

TEST(StrictJson, KeepsValuesOrderAndLines) {
  const JsonNode root = parse_strict_json(
      "{\n \"z\": [1, 2.5,\n true],\n \"a\": {\"n\": null},\n \"s\": \"x\\ny\"\n}", "f.json");
  const auto& members = root.as_object();
  ASSERT_EQ(members.size(), 3U);
  EXPECT_EQ(members[0].key, "z");
  EXPECT_EQ(members[1].key, "a");
  EXPECT_EQ(root.at("z").line, 2);
  EXPECT_EQ(root.at("a").line, 4);
  EXPECT_EQ(root.at("s").line, 5);
  EXPECT_EQ(root.at("z").as_array()[0].as_integer(), 1);
  EXPECT_EQ(root.at("z").as_array()[1].as_number(), 2.5);
  EXPECT_TRUE(root.at("z").as_array()[2].as_boolean());
  EXPECT_EQ(root.at("z").as_array()[2].line, 3);
  EXPECT_EQ(root.at("s").as_string(), "x\ny");
  EXPECT_EQ(root.at("a").at("n").kind, JsonNode::Kind::null);
}

TEST(StrictJson, MalformedTextNamesItsLine) {
  EXPECT_EQ(error_of("{\n\"a\": 1,\n}").rfind("f.json:3: malformed JSON: ", 0), 0U);
  EXPECT_EQ(error_of("{}\n\n{}").rfind("f.json:3: malformed JSON: ", 0), 0U);
  for (const char* text : {"", "{", "[1,]", "{\"a\":NaN}", "// c\n{}", "{'a':1}", "1e999", "nul"}) {
    EXPECT_NE(error_of(text).find("malformed JSON"), std::string::npos) << text;
  }
}

TEST(StrictJson, DuplicateKeysAndDeepNestingAreErrors) {
  EXPECT_EQ(error_of("{\"a\": 1,\n\"b\": 2,\n\"a\": 3}"), "f.json:3: key 'a' appears twice");
  EXPECT_EQ(error_of("{\"a\": {\"x\": 1}, \"b\": {\"x\": 1}}"), "no error");
  EXPECT_EQ(error_of(std::string(64, '[') + std::string(64, ']')), "no error");
  EXPECT_EQ(error_of(std::string(100000, '[')), "f.json:1: nested deeper than 64");
}

TEST(StrictJson, GettersRefuseOtherTypes) {
  const JsonNode root = parse_strict_json("{\"a\": 1.5, \"b\": \"1\", \"c\": 1e30}", "f.json");
  EXPECT_THROW(root.at("a").as_integer(), UsageError);
  EXPECT_THROW(root.at("a").as_string(), UsageError);
  EXPECT_THROW(root.at("b").as_number(), UsageError);
  EXPECT_THROW(root.at("b").as_boolean(), UsageError);
  EXPECT_THROW(root.at("b").as_array(), UsageError);
  EXPECT_THROW(root.at("b").at("x"), UsageError);
  EXPECT_THROW(root.at("missing"), UsageError);
  EXPECT_THROW(parse_strict_json("9007199254740994", "f").as_integer(), UsageError);
}

TEST(StrictJson, HostileKeysAreShownEscaped) {
  const JsonNode root = parse_strict_json("{\"\\u001b[2J\": 1}", "f.json");
  try {
    root.allow_keys({"a"});
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "f.json:1: unknown key '\\x1b[2J'");
  }
}

TEST(Suggest, NearNamesOnly) {
  const std::vector<std::string> known = {"naive", "fa2", "quickstart"};
  EXPECT_EQ(suggest("naiv", known), "did you mean 'naive'?");
  EXPECT_EQ(suggest("quikstrat", known), "did you mean 'quickstart'?");
  EXPECT_EQ(suggest("fa3", known), "did you mean 'fa2'?");
  EXPECT_EQ(suggest("zzz", known), "known: naive, fa2, quickstart");
  EXPECT_EQ(suggest("x", known), "known: naive, fa2, quickstart");
  EXPECT_EQ(suggest(std::string(1000, 'a'), known), "known: naive, fa2, quickstart");
}

}  // namespace
}  // namespace rooflash
