#include "report/data_table.hpp"

#include <fmt/format.h>

#include "core/utf8.hpp"
#include "report/escape.hpp"

namespace rooflash {
namespace {

std::string row_html(const DataTable& table, const DataRow& row) {
  std::string out = "<tr";
  if (!row.ref.empty()) out += fmt::format(" data-row=\"{}\"", row.ref);
  if (!row.kernel.empty()) {
    out += fmt::format(" data-kernel=\"{}\"", escape_html(shortened(row.kernel)));
  }
  if (!table.links && !row.anchor.empty()) out += fmt::format(" id=\"{}\"", row.anchor);
  out += ">";
  for (const DataCell& cell : row.cells) {
    const std::string text = escape_html(shortened(cell.text));
    if (&cell == row.cells.data() && table.links) {
      out += fmt::format("<td><a href=\"#{}\">{}</a></td>", row.anchor, text);
    } else if (cell.sort) {
      out += fmt::format("<td data-v=\"{}\">{}</td>", *cell.sort, text);
    } else {
      out += fmt::format("<td>{}</td>", text);
    }
  }
  return out + "</tr>\n";
}

}  // namespace

std::string shortened(std::string_view text, std::size_t max_bytes) {
  if (text.size() <= max_bytes) return std::string(text);
  std::size_t length = 0;
  while (length < text.size()) {
    const std::size_t next = std::max<std::size_t>(1, first_utf8(text.substr(length)).length);
    if (length + next > max_bytes) break;
    length += next;
  }
  return fmt::format("{}... ({} bytes)", text.substr(0, length), text.size());
}

std::string html_table(const DataTable& table) {
  std::string out = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\">"
      "<table id=\"{1}\"{2}><caption>{0}</caption><thead><tr>",
      escape_html(table.caption), table.id, table.links ? " data-links" : "");
  for (const std::string& column : table.columns) {
    out += fmt::format("<th scope=\"col\">{}</th>", escape_html(column));
  }
  out += "</tr></thead><tbody>\n";
  for (const DataRow& row : table.rows) out += row_html(table, row);
  out += "</tbody></table></div>\n";
  if (table.total > table.rows.size()) {
    out += fmt::format("<p class=\"more\" data-more=\"{}\">{} more rows need scripts.</p>\n",
                       table.id, table.total - table.rows.size());
  }
  return out;
}

}  // namespace rooflash
