// parse_json: nlohmann's parser with a handler of our own, because the library's lets an object
// hold a key twice and its hook for that is slow on records of thousands of rows.
#include <algorithm>

#include "record/json.hpp"
#include "record/json_io.hpp"

namespace rooflash {
namespace {

// "line 3, column 7" of byte `offset` (from 0).
std::string line_and_column(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, std::min(offset, text.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return "line " + std::to_string(line) + ", column " +
         std::to_string(before.size() - line_start + 1);
}

// Builds the value from the parser's events. Every handler but `key` and `parse_error` goes on.
class Builder : public nlohmann::json_sax<Json> {
 public:
  Builder(std::string_view text, std::string prefix) : text_(text), prefix_(std::move(prefix)) {}

  Json take() { return std::move(root_); }

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(number_integer_t value) override { return add(value); }
  bool number_unsigned(number_unsigned_t value) override { return add(value); }
  bool number_float(number_float_t value, const string_t&) override { return add(value); }
  bool string(string_t& value) override { return add(std::move(value)); }
  bool binary(binary_t& value) override { return add(std::move(value)); }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    const auto [member, added] = open_.back()->emplace(name, nullptr);
    if (!added) {
      throw UsageError(prefix_ + "the key \"" + printable(name, 60) +
                       "\" stands twice in one object");
    }
    member_ = &*member;
    return true;
  }

  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    const std::size_t offset = position == 0 ? 0 : position - 1;
    const std::string place = line_and_column(text_, offset);
    if (error.id == kNumberOverflow) {
      throw UsageError(prefix_ + "a number is outside the range of a double at " + place);
    }
    if (offset >= text_.size()) {
      throw UsageError(prefix_ + "not valid JSON at " + place + ": the text ends too early",
                       "it is empty or was cut short: write it anew");
    }
    throw UsageError(prefix_ + "not valid JSON at " + place,
                     "JSON allows no comments, trailing commas, NaN or Infinity");
  }

 private:
  // Puts `value` where the text stands: the root, an array's end, or under the last key.
  Json& place(Json&& value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return parent.back();
    }
    return *member_ = std::move(value);
  }
  bool add(Json&& value) {
    place(std::move(value));
    return true;
  }
  bool open(Json&& value) {
    open_.push_back(&place(std::move(value)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  std::string_view text_;
  std::string prefix_;
  Json root_;
  std::vector<Json*> open_;  // objects and arrays not yet closed; each the last of its parent
  Json* member_ = nullptr;   // value of the last key
};

}  // namespace

Json parse_json(std::string_view text, std::string_view place) {
  Builder builder(text, place.empty() ? "" : std::string(place) + ": ");
  Json::sax_parse(text, &builder);
  return builder.take();
}

}  // namespace rooflash
