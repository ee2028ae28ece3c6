// JSON read strictly, with the line of every value, for files that people write (suites, GPU
// specs).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rooflash {

struct JsonMember;

// One JSON value. The getters throw a UsageError "file:line: ..." on another type.
class JsonNode {
 public:
  enum class Kind { null, boolean, integer, real, string, array, object };

  Kind kind = Kind::null;
  int line = 0;
  std::string file;
  std::string text;  // of scalars: the string itself, or the number or boolean as written
  double number = 0;
  std::vector<JsonNode> items;      // of an array
  std::vector<JsonMember> members;  // of an object, in file order

  const std::string& as_string() const;
  double as_number() const;         // integer or real
  std::int64_t as_integer() const;  // integer only
  bool as_boolean() const;
  const std::vector<JsonNode>& as_array() const;
  const std::vector<JsonMember>& as_object() const;

  const JsonNode* find(std::string_view key) const;  // nullptr where absent
  const JsonNode& at(std::string_view key) const;    // UsageError where absent

  // UsageError with the line of the first key that is not in `known`, and a suggestion.
  void allow_keys(const std::vector<std::string>& known) const;

  [[noreturn]] void fail(const std::string& what, const std::string& hint = {}) const;
};

struct JsonMember {
  std::string key;
  JsonNode value;
};

// Throws UsageError "file:line: ..." on malformed JSON, trailing text, duplicate keys and nesting
// deeper than 64.
JsonNode parse_strict_json(std::string_view text, std::string_view file);

}  // namespace rooflash
