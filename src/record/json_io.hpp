// JsonWriter and JsonReader: a type's `describe(io, value)` names each field once, for both
// directions, so that what is written and what is read cannot drift apart.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/error.hpp"
#include "core/record.hpp"
#include "core/units.hpp"

namespace rooflash {

using Json = nlohmann::ordered_json;

// The second parameter of `describe`: mutable for a reader, const for a writer.
template <class Io, class T>
using Described = std::conditional_t<Io::kReads, T&, const T&>;

// Where a value stands, spelled out only when an error needs it.
struct Place {
  const Place* parent = nullptr;
  std::string_view name;  // the root's text, or a key; empty for an element of an array
  std::size_t index = 0;

  std::string text() const;
};

[[noreturn]] void fail_at(const Place& place, const std::string& what);
// "expected a number, found a string"
[[noreturn]] void fail_type(const Place& place, std::string_view expected, const Json& found);

using Choices = std::initializer_list<std::string_view>;
std::string choice_at(const Place& place, const Json& json, Choices choices);

class JsonWriter {
 public:
  static constexpr bool kReads = false;

  template <class T>
  void operator()(const char* key, const T& value) {
    json_[key] = encode(value);
  }
  // A key that is left out where there is no value.
  template <class T>
  void optional(const char* key, const std::optional<T>& value) {
    if (value) json_[key] = encode(*value);
  }
  void choice(const char* key, const std::string& value, Choices) { json_[key] = value; }
  template <class Fields>
  void object(const char* key, const Fields& fields) {
    JsonWriter inner;
    fields(inner);
    json_[key] = inner.take();
  }
  Json take() { return std::move(json_); }

  template <class T>
  static Json encode(const T& value) {
    if constexpr (std::is_same_v<T, double>) {
      return value - value == 0 ? Json(value) : Json(nullptr);
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return to_string(value);
    } else {
      return encode_compound(value);
    }
  }

 private:
  template <class T>
  static Json encode_compound(const std::optional<T>& value) {
    return value ? encode(*value) : Json(nullptr);
  }
  template <class T>
  static Json encode_compound(const std::vector<T>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(encode(value));
    return array;
  }
  template <class T, std::size_t N>
  static Json encode_compound(const std::array<T, N>& values) {
    Json array = Json::array();
    for (const T& value : values) array.push_back(encode(value));
    return array;
  }
  template <class T>
  static Json encode_compound(const std::map<std::string, T>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) object[key] = encode(value);
    return object;
  }
  template <class T>
  static Json encode_compound(const T& value) {
    JsonWriter inner;
    describe(inner, value);
    return inner.take();
  }

  Json json_ = Json::object();
};

class JsonReader {
 public:
  static constexpr bool kReads = true;

  // Both must outlive the reader. Throws UsageError where `json` is not an object.
  JsonReader(const Json& json, const Place& place) : json_(json), place_(place) {
    if (!json.is_object()) fail_type(place, "an object", json);
  }

  template <class T>
  void operator()(const char* key, T& value) const {
    decode(member(key), Place{&place_, key}, value);
  }
  template <class T>
  void optional(const char* key, std::optional<T>& value) const {
    value.reset();
    const auto found = json_.find(key);
    if (found != json_.end()) decode(*found, Place{&place_, key}, value);
  }
  void choice(const char* key, std::string& value, Choices choices) const {
    value = choice_at(Place{&place_, key}, member(key), choices);
  }
  template <class Fields>
  void object(const char* key, const Fields& fields) const {
    const Place place{&place_, key};
    JsonReader inner(member(key), place);
    fields(inner);
  }
  const Place& place() const { return place_; }

  static void decode(const Json& json, const Place& place, bool& value);
  static void decode(const Json& json, const Place& place, int& value);
  static void decode(const Json& json, const Place& place, std::int64_t& value);
  static void decode(const Json& json, const Place& place, std::uint64_t& value);
  static void decode(const Json& json, const Place& place, double& value);
  static void decode(const Json& json, const Place& place, std::string& value);
  static void decode(const Json& json, const Place& place, DType& value);
  static void decode(const Json& json, const Place& place, Pass& value);
  static void decode(const Json& json, const Place& place, MaskKind& value);
  static void decode(const Json& json, const Place& place, Align& value);
  static void decode(const Json& json, const Place& place, Distribution& value);
  static void decode(const Json& json, const Place& place, Status& value);

  template <class T>
  static void decode(const Json& json, const Place& place, std::optional<T>& value) {
    value.reset();
    if (!json.is_null()) decode(json, place, value.emplace());
  }
  template <class T>
  static void decode(const Json& json, const Place& place, std::vector<T>& values) {
    if (!json.is_array()) fail_type(place, "an array", json);
    values.resize(json.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      decode(json[i], Place{&place, {}, i}, values[i]);
    }
  }
  template <class T, std::size_t N>
  static void decode(const Json& json, const Place& place, std::array<T, N>& values) {
    if (!json.is_array()) fail_type(place, "an array", json);
    if (json.size() != N) {
      fail_at(place,
              "expected " + std::to_string(N) + " elements, found " + std::to_string(json.size()));
    }
    for (std::size_t i = 0; i < N; ++i) decode(json[i], Place{&place, {}, i}, values[i]);
  }
  template <class T>
  static void decode(const Json& json, const Place& place, std::map<std::string, T>& values) {
    if (!json.is_object()) fail_type(place, "an object", json);
    values.clear();
    for (const auto& [key, element] : json.items()) {
      decode(element, Place{&place, key}, values[key]);
    }
  }
  template <class T>
  requires std::is_class_v<T>
  static void decode(const Json& json, const Place& place, T& value) {
    JsonReader inner(json, place);
    describe(inner, value);
  }

 private:
  const Json& member(std::string_view key) const;

  const Json& json_;
  const Place& place_;
};

}  // namespace rooflash
