#include "record/json_io.hpp"

namespace rooflash {
namespace {

std::string_view kind_of(const Json& json) {
  switch (json.type()) {
    case Json::value_t::null:
      return "null";
    case Json::value_t::object:
      return "an object";
    case Json::value_t::array:
      return "an array";
    case Json::value_t::string:
      return "a string";
    case Json::value_t::boolean:
      return json.get<bool>() ? "true" : "false";
    case Json::value_t::number_float:
      return "a number with a fraction";
    default:
      return "an integer";
  }
}

const std::string& text_at(const Place& place, const Json& json) {
  if (!json.is_string()) fail_type(place, "a string", json);
  return json.get_ref<const std::string&>();
}

[[noreturn]] void fail_choice(const Place& place, std::string_view found, Choices choices) {
  std::string known;
  for (std::string_view choice : choices) {
    if (!known.empty()) known += ", ";
    known += choice;
  }
  fail_at(place, "\"" + printable(found, 60) + "\" is not one of " + known);
}

template <class T>
void decode_enum(const Json& json, const Place& place, std::optional<T> (*parse)(std::string_view),
                 Choices choices, T& value) {
  const std::string& text = text_at(place, json);
  const std::optional<T> parsed = parse(text);
  if (!parsed) fail_choice(place, text, choices);
  value = *parsed;
}

}  // namespace

std::string Place::text() const {
  if (parent == nullptr) return std::string(name);
  const std::string above = parent->text();
  if (name.empty()) return above + "[" + std::to_string(index) + "]";
  if (above.empty() || above.ends_with(": ")) return above + printable(name, 60);
  return above + "." + printable(name, 60);
}

void fail_at(const Place& place, const std::string& what) {
  std::string where = place.text();
  if (where.ends_with(": ")) where.resize(where.size() - 2);
  throw UsageError(where.empty() ? what : where + ": " + what);
}

void fail_type(const Place& place, std::string_view expected, const Json& found) {
  fail_at(place, "expected " + std::string(expected) + ", found " + std::string(kind_of(found)));
}

std::string choice_at(const Place& place, const Json& json, Choices choices) {
  const std::string& text = text_at(place, json);
  for (std::string_view choice : choices) {
    if (text == choice) return text;
  }
  fail_choice(place, text, choices);
}

const Json& JsonReader::member(std::string_view key) const {
  const auto found = json_.find(key);
  if (found == json_.end()) fail_at(Place{&place_, key}, "missing");
  return *found;
}

void JsonReader::decode(const Json& json, const Place& place, bool& value) {
  if (!json.is_boolean()) fail_type(place, "true or false", json);
  value = json.get<bool>();
}

void JsonReader::decode(const Json& json, const Place& place, std::int64_t& value) {
  if (!json.is_number_integer()) fail_type(place, "an integer", json);
  if (json.is_number_unsigned() &&
      json.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()}) {
    fail_at(place, "the integer is too large");
  }
  value = json.get<std::int64_t>();
}

void JsonReader::decode(const Json& json, const Place& place, int& value) {
  std::int64_t wide = 0;
  decode(json, place, wide);
  if (wide < std::numeric_limits<int>::min() || wide > std::numeric_limits<int>::max()) {
    fail_at(place, "the integer is too large");
  }
  value = static_cast<int>(wide);
}

void JsonReader::decode(const Json& json, const Place& place, std::uint64_t& value) {
  if (!json.is_number_integer()) fail_type(place, "an integer", json);
  if (!json.is_number_unsigned() && json.get<std::int64_t>() < 0) {
    fail_at(place, "the integer is negative");
  }
  value = json.get<std::uint64_t>();
}

void JsonReader::decode(const Json& json, const Place& place, double& value) {
  if (!json.is_number()) fail_type(place, "a number", json);
  value = json.get<double>();
}

void JsonReader::decode(const Json& json, const Place& place, std::string& value) {
  value = text_at(place, json);
}

void JsonReader::decode(const Json& json, const Place& place, DType& value) {
  decode_enum(json, place, parse_dtype, {"fp32", "fp16", "bf16", "e4m3"}, value);
}

void JsonReader::decode(const Json& json, const Place& place, Pass& value) {
  decode_enum(json, place, parse_pass, {"fwd", "bwd"}, value);
}

void JsonReader::decode(const Json& json, const Place& place, MaskKind& value) {
  decode_enum(json, place, parse_mask_kind, {"none", "causal", "window"}, value);
}

void JsonReader::decode(const Json& json, const Place& place, Align& value) {
  decode_enum(json, place, parse_align, {"bottom-right", "top-left"}, value);
}

void JsonReader::decode(const Json& json, const Place& place, Distribution& value) {
  decode_enum(
      json, place, parse_distribution,
      {"normal", "outlier", "large", "negative", "constant", "biased", "biased-0.3", "peaky"},
      value);
}

void JsonReader::decode(const Json& json, const Place& place, Status& value) {
  decode_enum(json, place, parse_status,
              {"ok", "unsupported", "wrong", "failed", "oom", "crashed", "timeout", "not_run"},
              value);
}

}  // namespace rooflash
