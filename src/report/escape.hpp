// Untrusted text made harmless where it is shown.
#pragma once

#include <string>
#include <string_view>

namespace rooflash {

// For HTML text and quoted attributes: & < > " ' as entities; control characters (but tab and
// newline) and invalid UTF-8 as U+FFFD.
std::string escape_html(std::string_view text);

// For JSON inside a <script> element: < > & and U+2028, U+2029 as \u escapes. These occur only
// inside JSON strings, so the value is unchanged.
std::string escape_script_json(std::string_view json);

// `text` as a JSON string literal with those escapes; invalid UTF-8 becomes U+FFFD.
std::string script_json_string(std::string_view text);

// For an id or a fragment: every character outside [A-Za-z0-9/._@-] becomes '_'.
std::string escape_anchor(std::string_view text);

}  // namespace rooflash
