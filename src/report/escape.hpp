// Untrusted text made harmless where it is shown.
#pragma once

#include <string>
#include <string_view>

namespace rooflash {

// For HTML text and quoted attributes: & < > " ' as entities; invalid UTF-8 and what is unsafe to
// show (core/utf8.hpp; but tab and newline) as U+FFFD.
std::string escape_html(std::string_view text);

// For JSON inside a <script> element: < > & and U+2028, U+2029 as \u escapes. These occur only
// inside JSON strings, so the value is unchanged.
std::string escape_script_json(std::string_view json);

// `text` as a JSON string literal with those escapes; invalid UTF-8, and what is unsafe to show and
// has no JSON escape, becomes U+FFFD. For the cells of tables: it changes the value.
std::string script_json_string(std::string_view text);

// A field as RFC 4180 has it. What is unsafe to show stands as \xNN, and a text that a spreadsheet
// would run as a formula begins with a quote.
std::string csv_field(std::string_view text);

// For a line or a table cell of GitHub-flavoured Markdown: no HTML, no table breaks, no links,
// mentions or emphasis; what is unsafe to show as \xNN. At most 200 characters (printable()).
std::string escape_markdown(std::string_view text);

// For an id or a fragment: every character outside [A-Za-z0-9/._@-] becomes '_'.
std::string escape_anchor(std::string_view text);

}  // namespace rooflash
