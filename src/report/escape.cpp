#include "report/escape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "core/units.hpp"
#include "core/utf8.hpp"

namespace rooflash {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [length, code] = first_utf8(text);
    const char c = text[0];
    if (length == 0 || (is_unsafe_to_show(code) && c != '\t' && c != '\n')) {
      out += kReplacement;
    } else if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return out;
}

std::string escape_script_json(std::string_view json) {
  std::string out;
  out.reserve(json.size() + json.size() / 16);
  for (std::size_t i = 0; i < json.size(); ++i) {
    switch (json[i]) {
      case '<':
        out += "\\u003c";
        break;
      case '>':
        out += "\\u003e";
        break;
      case '&':
        out += "\\u0026";
        break;
      case '\xE2':
        if (json.substr(i, 3) == "\xE2\x80\xA8") {
          out += "\\u2028";
          i += 2;
          break;
        }
        if (json.substr(i, 3) == "\xE2\x80\xA9") {
          out += "\\u2029";
          i += 2;
          break;
        }
        [[fallthrough]];
      default:
        out += json[i];
    }
  }
  return out;
}

std::string script_json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const auto [length, code] = first_utf8(text);
    const char c = text[0];
    if (length == 0 || (is_unsafe_to_show(code) && code >= 0x80)) {
      out += kReplacement;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (length == 1 && static_cast<std::uint8_t>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return escape_script_json(out += '"');
}

std::string csv_field(std::string_view text) {
  double number = 0;
  const char* const end = text.data() + text.size();
  const bool is_number = !text.empty() && std::from_chars(text.data(), end, number).ptr == end;
  const bool formula = !text.empty() && !is_number &&
                       std::string_view("=+-@\t\r").find(text.front()) != std::string_view::npos;
  std::string shown = (formula ? "'" : "") + printable(text, std::string_view::npos);
  if (shown.find_first_of(",\"") == std::string::npos) return shown;
  std::string out = "\"";
  for (const char c : shown) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string escape_markdown(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '|':
      case '\\':
      case '`':
      case '*':
      case '_':
      case '[':
      case ']':
      case '!':
      case '@':
        out += fmt::format("&#{};", static_cast<int>(c));
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string escape_anchor(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool kept = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                      std::string_view("/._@-").find(c) != std::string_view::npos;
    out += kept ? c : '_';
  }
  return out;
}

}  // namespace rooflash
