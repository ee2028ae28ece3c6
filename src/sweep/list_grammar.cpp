#include "sweep/list_grammar.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/units.hpp"
#include "model/suggest.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxElements = 10000;  // a longer axis is a slip of the pen: 1:1m:1

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <class Value>
void append_new(std::vector<Value>& values, Value value) {
  if (std::find(values.begin(), values.end(), value) == values.end()) {
    values.push_back(std::move(value));
  }
}

// "512:16k:x2" or "1k:8k:1k", both ends inclusive where the step meets them.
std::vector<std::int64_t> parse_range(std::string_view element, std::string_view flag) {
  const auto fail = [&](std::string_view why) {
    throw UsageError(fmt::format("{}: range '{}' {}", flag, printable(element), why),
                     "write FIRST:LAST:STEP, such as 512:16k:x2 (doubling) or 1k:8k:1k");
  };
  const std::vector<std::string_view> parts = split(element, ':');
  if (parts.size() != 3) fail("does not have three parts");
  const std::int64_t first = parse_count(parts[0], flag);
  const std::int64_t last = parse_count(parts[1], flag);
  if (first > last) fail("runs backwards");
  const bool geometric = parts[2].starts_with('x');
  const std::int64_t step = parse_count(parts[2].substr(geometric ? 1 : 0), flag);
  if (geometric && step == 1) fail("never grows: the factor must be at least 2");
  std::vector<std::int64_t> values;
  for (std::int64_t value = first;;) {
    if (values.size() == kMaxElements) fail("has too many values");
    values.push_back(value);
    // The next value is compared before it is made, so that it cannot overflow.
    if (geometric ? value > last / step : value > last - step) return values;
    value = geometric ? value * step : value + step;
  }
}

}  // namespace

std::vector<std::string> parse_elements(std::string_view text, std::string_view flag) {
  std::vector<std::string> elements;
  for (const std::string_view element : split(text, ',')) {
    if (element.empty()) {
      throw UsageError(fmt::format("{}: '{}' has an empty element", flag, printable(text)),
                       "write a comma-separated list without spaces, such as a,b,c");
    }
    append_new(elements, std::string(element));
    if (elements.size() > kMaxElements) {
      throw UsageError(fmt::format("{}: the list has too many elements", flag));
    }
  }
  return elements;
}

std::vector<std::int64_t> parse_counts(std::string_view text, std::string_view flag) {
  std::vector<std::int64_t> counts;
  for (const std::string& element : parse_elements(text, flag)) {
    if (element.find(':') == std::string::npos) {
      append_new(counts, parse_count(element, flag));
    } else {
      for (const std::int64_t value : parse_range(element, flag)) append_new(counts, value);
    }
  }
  return counts;
}

std::vector<std::string> select_names(const std::vector<std::string>& elements,
                                      const std::vector<std::string>& known,
                                      std::string_view flag) {
  std::vector<std::string> chosen;
  std::vector<std::string> excluded;
  const auto check = [&](const std::string& name) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw UsageError(fmt::format("{}: unknown name '{}'", flag, printable(name)),
                       suggest(name, known));
    }
  };
  for (const std::string& element : elements) {
    if (element.starts_with('^')) {
      excluded.push_back(element.substr(1));
      check(excluded.back());
    } else if (element == "all") {
      for (const std::string& name : known) append_new(chosen, name);
    } else {
      check(element);
      append_new(chosen, element);
    }
  }
  if (chosen.empty()) chosen = known;
  std::erase_if(chosen, [&](const std::string& name) {
    return std::find(excluded.begin(), excluded.end(), name) != excluded.end();
  });
  if (chosen.empty()) {
    throw UsageError(fmt::format("{}: the list leaves every name out", flag),
                     "drop one of the ^ elements");
  }
  return chosen;
}

}  // namespace rooflash
