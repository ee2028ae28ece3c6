#include "model/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxDepth = 64;

std::string_view kind_name(JsonNode::Kind kind) {
  switch (kind) {
    case JsonNode::Kind::null:
      return "null";
    case JsonNode::Kind::boolean:
      return "true or false";
    case JsonNode::Kind::integer:
      return "a whole number";
    case JsonNode::Kind::real:
      return "a number";
    case JsonNode::Kind::string:
      return "a string";
    case JsonNode::Kind::array:
      return "an array";
    case JsonNode::Kind::object:
      return "an object";
  }
  return "?";
}

// An input iterator that counts the lines the parser has read.
struct CountingIterator {
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  const char* at;
  int* line;
  reference operator*() const { return *at; }
  CountingIterator& operator++() {
    if (*at == '\n') ++*line;
    ++at;
    return *this;
  }
  bool operator==(const CountingIterator& other) const { return at == other.at; }
  bool operator!=(const CountingIterator& other) const { return at != other.at; }
};

// Builds the tree from the parser's events. `open_` holds the containers being read; a container
// joins its parent when it closes.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  Builder(std::string file, const int& line) : file_(std::move(file)), line_(line) {}

  JsonNode take() { return std::move(root_); }

  bool null() override { return add(leaf(JsonNode::Kind::null, "null", 0)); }
  bool boolean(bool value) override {
    return add(leaf(JsonNode::Kind::boolean, value ? "true" : "false", 0));
  }
  bool number_integer(number_integer_t value) override {
    return add(leaf(JsonNode::Kind::integer, std::to_string(value), static_cast<double>(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return add(leaf(JsonNode::Kind::integer, std::to_string(value), static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t& written) override {
    return add(leaf(JsonNode::Kind::real, written, value));
  }
  bool string(string_t& value) override { return add(leaf(JsonNode::Kind::string, value, 0)); }
  bool binary(binary_t&) override { return false; }  // JSON text has none
  bool start_object(std::size_t) override { return open(JsonNode::Kind::object); }
  bool start_array(std::size_t) override { return open(JsonNode::Kind::array); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    const JsonNode& object = open_.back().node;
    if (object.find(name) != nullptr) {
      leaf(JsonNode::Kind::null, "", 0)
          .fail(fmt::format("key '{}' appears twice", printable(name)));
    }
    open_.back().key = name;
    key_line_ = line_;
    return true;
  }
  bool parse_error(std::size_t, const std::string&,
                   const nlohmann::json::exception& error) override {
    // "[json.exception...] parse error at line 3, column 5: syntax error ..." - the place is ours.
    const std::string_view what = error.what();
    const std::size_t column = what.find("column ");
    const std::size_t colon = what.find(": ", column == std::string_view::npos ? 0 : column);
    const std::string_view detail = colon == std::string_view::npos ? what : what.substr(colon + 2);
    leaf(JsonNode::Kind::null, "", 0).fail("malformed JSON: " + printable(detail, 300));
  }

 private:
  struct Open {
    JsonNode node;
    std::string key;  // of the value being read, where node is an object
  };

  JsonNode leaf(JsonNode::Kind kind, std::string text, double number) const {
    JsonNode node;
    node.kind = kind;
    // The parser looks one character past a number, so a member's line is that of its key.
    const bool member = !open_.empty() && open_.back().node.kind == JsonNode::Kind::object;
    node.line = member && kind != JsonNode::Kind::null ? key_line_ : line_;
    node.file = file_;
    node.text = std::move(text);
    node.number = number;
    return node;
  }
  bool open(JsonNode::Kind kind) {
    JsonNode node = leaf(kind, "", 0);
    if (open_.size() == kMaxDepth) node.fail(fmt::format("nested deeper than {}", kMaxDepth));
    open_.push_back({std::move(node), {}});
    return true;
  }
  bool close() {
    JsonNode node = std::move(open_.back().node);
    open_.pop_back();
    return add(std::move(node));
  }
  bool add(JsonNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (open_.back().node.kind == JsonNode::Kind::object) {
      open_.back().node.members.push_back({std::move(open_.back().key), std::move(node)});
    } else {
      open_.back().node.items.push_back(std::move(node));
    }
    return true;
  }

  std::string file_;
  const int& line_;
  int key_line_ = 0;
  std::vector<Open> open_;
  JsonNode root_;
};

void require(const JsonNode& node, bool fits, std::string_view wanted) {
  if (!fits) node.fail(fmt::format("expected {}, found {}", wanted, kind_name(node.kind)));
}

}  // namespace

void JsonNode::fail(const std::string& what, const std::string& hint) const {
  throw UsageError(fmt::format("{}:{}: {}", printable(file), line, what), hint);
}

const std::string& JsonNode::as_string() const {
  require(*this, kind == Kind::string, "a string");
  return text;
}

double JsonNode::as_number() const {
  require(*this, kind == Kind::integer || kind == Kind::real, "a number");
  return number;
}

std::int64_t JsonNode::as_integer() const {
  require(*this, kind == Kind::integer, "a whole number");
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (number > kExact || number < -kExact) fail(text + " is too large");
  return static_cast<std::int64_t>(number);
}

bool JsonNode::as_boolean() const {
  require(*this, kind == Kind::boolean, "true or false");
  return text == "true";
}

const std::vector<JsonNode>& JsonNode::as_array() const {
  require(*this, kind == Kind::array, "an array");
  return items;
}

const std::vector<JsonMember>& JsonNode::as_object() const {
  require(*this, kind == Kind::object, "an object");
  return members;
}

const JsonNode* JsonNode::find(std::string_view key) const {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const auto& member) { return member.key == key; });
  return found == members.end() ? nullptr : &found->value;
}

const JsonNode& JsonNode::at(std::string_view key) const {
  as_object();
  const JsonNode* const node = find(key);
  if (node == nullptr) fail(fmt::format("key '{}' is missing", key));
  return *node;
}

void JsonNode::allow_keys(const std::vector<std::string>& known) const {
  for (const auto& [key, value] : as_object()) {
    if (std::find(known.begin(), known.end(), key) == known.end()) {
      value.fail(fmt::format("unknown key '{}'", printable(key)), suggest(key, known));
    }
  }
}

JsonNode parse_strict_json(std::string_view text, std::string_view file) {
  int line = 1;
  Builder builder{std::string(file), line};
  nlohmann::json::sax_parse(CountingIterator{text.data(), &line},
                            CountingIterator{text.data() + text.size(), &line}, &builder);
  return builder.take();
}

}  // namespace rooflash
