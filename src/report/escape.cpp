#include "report/escape.hpp"

#include <fmt/format.h>

#include <cstdint>

namespace rooflash {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Length of the valid UTF-8 sequence at the start of `text`; 0 where there is none.
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(text[i]); };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  const std::uint8_t next = byte(1);
  const bool overlong = (lead == 0xE0 && next < 0xA0) || (lead == 0xF0 && next < 0x90);
  const bool outside = (lead == 0xED && next > 0x9F) || (lead == 0xF4 && next > 0x8F);
  return overlong || outside ? 0 : length;
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    const auto c = static_cast<std::uint8_t>(text[0]);
    const bool control = (c < 0x20 && c != '\t' && c != '\n') || c == 0x7F ||
                         (length == 2 && c == 0xC2 && static_cast<std::uint8_t>(text[1]) < 0xA0);
    if (length == 0 || control) {
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
    text.remove_prefix(length ? length : 1);
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
    const std::size_t length = sequence_length(text);
    const char c = text[0];
    if (length == 0) {
      out += kReplacement;
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (length == 1 && static_cast<std::uint8_t>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<int>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length ? length : 1);
  }
  return escape_script_json(out += '"');
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
