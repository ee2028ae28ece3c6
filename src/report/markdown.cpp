#include <fmt/format.h>

#include "report/escape.hpp"
#include "report/formats.hpp"
#include "report/pivot.hpp"
#include "report/roofs.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

std::string cell(const Cell& entry, const Roofs& roofs) {
  if (!entry.row) return "--";
  if (entry.row->status != Status::ok || !entry.row->time_us) {
    return std::string(status_word(entry.row->status));
  }
  const CellText text = cell_text(entry, roofs);
  return fmt::format("{} / {} / {} / {}", text.time, text.tflops, text.roof, text.hbm);
}

std::string group_table(const Group& group) {
  std::string out = fmt::format("\n**{}** ({})\n\n| seqlen | batch |",
                                escape_markdown(group_title(group)), escape_markdown(group.device));
  std::string rule = "\n|---:|---:|";
  bool simulated = false;
  for (const Line& line : group.lines) simulated |= line.simulated;
  for (const std::string& kernel : group.kernels) {
    out += fmt::format(" {} |", escape_markdown(kernel));
    rule += "---:|";
  }
  if (simulated) {
    out += " |";
    rule += "---|";
  }
  out += rule + "\n";
  for (const Line& line : group.lines) {
    out += fmt::format("| {} | {} |", line_label(line), line.problem->batch);
    for (const Cell& entry : line.cells) out += fmt::format(" {} |", cell(entry, group.roofs));
    if (simulated) out += line.simulated ? " simulated |" : " |";
    out += "\n";
  }
  return out;
}

// The ok rows whose FLOPs the papers count otherwise.
std::string paper_table(const Record& record) {
  std::string out;
  for (const Row& row : record.rows) {
    if (row.status != Status::ok || !paper_flops(row)) continue;
    if (out.empty()) out = "\n| case | model FLOPs |\n|---|---|\n";
    out += fmt::format("| {} | {} |\n", escape_markdown(row.case_id), flops_text(row));
  }
  return out;
}

}  // namespace

std::string render_markdown(const Record& record) {
  std::string out;
  for (const std::string& device : simulated_devices(record)) {
    out += fmt::format(
        "**SIMULATED: {} is a model. No GPU was measured; times and bytes are predictions.**\n\n",
        escape_markdown(device));
  }
  const Pivot grid = pivot(record);
  for (const std::string& sentence : summary_sentences(grid)) {
    out += "- " + escape_markdown(sentence) + "\n";
  }
  out += fmt::format("- {}: {}\n", counted(std::ssize(record.rows), "row"), status_counts(record));
  for (const Warning& warning : warnings(record)) {
    out += fmt::format("- WARN {}: {}\n", escape_markdown(warning.what), warning.action);
  }
  out +=
      "\nCells: time / TFLOPS / % of the roof (c compute, m memory side) / HBM bytes over "
      "compulsory bytes.\n";
  for (const Group& group : grid.groups) out += group_table(group);
  out += paper_table(record);
  bool first = true;
  for (const Row& row : record.rows) {
    if (row.status == Status::ok) continue;
    if (first) out += "\n| not ok | case | reason |\n|---|---|---|\n";
    first = false;
    out += fmt::format("| {} | {} | {} |\n", status_word(row.status), escape_markdown(row.case_id),
                       escape_markdown(row.reason));
  }
  return out;
}

}  // namespace rooflash
