#include "report/table.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/units.hpp"
#include "report/pivot.hpp"
#include "report/summary.hpp"

namespace rooflash {
namespace {

constexpr int kLabelWidth = 14;   // shape and batch
constexpr int kKernelWidth = 31;  // two spaces, then time 8, TFLOPS 6, %roof 6, HBM 6
constexpr int kMarkWidth = 10;    // "simulated"

// Writes lines and knows the colours; text is padded before it is coloured.
class Writer {
 public:
  explicit Writer(const TableOptions& options) : options_(options) {}

  std::string style(std::string text, const char* code) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }
  std::string bold(std::string text) const { return style(std::move(text), "1"); }
  std::string red(std::string text) const { return style(std::move(text), "31"); }
  std::string yellow(std::string text) const { return style(std::move(text), "33"); }

  void line(std::string_view text = {}) {
    while (text.ends_with(' ')) text.remove_suffix(1);
    out_.append(text).push_back('\n');
  }

  // `text` broken at spaces; further lines are indented by `indent`.
  void wrapped(std::string_view text, int indent, const char* code = nullptr) {
    std::string line_text;
    const auto flush = [&] {
      line(code ? style(line_text, code) : line_text);
      line_text.assign(static_cast<std::size_t>(indent), ' ');
    };
    while (!text.empty()) {
      const std::size_t begin = text.find_first_not_of(' ');
      if (begin == std::string_view::npos) break;
      const std::size_t end = std::min(text.find(' ', begin), text.size());
      const std::string_view word = text.substr(0, end);
      const bool fits = line_text.size() + word.size() <= static_cast<std::size_t>(options_.width);
      const bool empty = line_text.find_first_not_of(' ') == std::string::npos;
      if (!fits && !empty) {
        flush();
        line_text.append(text.substr(begin, end - begin));
      } else {
        line_text.append(word);
      }
      text.remove_prefix(end);
    }
    flush();
  }

  std::string rule(int width) const {
    std::string text;
    for (int i = 0; i < width; ++i) text += options_.ascii ? "-" : "\u2500";
    return text;
  }
  const TableOptions& options() const { return options_; }
  std::string take() { return std::move(out_); }

 private:
  TableOptions options_;
  std::string out_;
};

std::string device_line(const Record& record, const DeviceInfo& device) {
  std::string text = fmt::format("{}  {}", printable(device.device), printable(device.name));
  if (device.compute_capability) text += fmt::format("  sm_{}", *device.compute_capability);
  if (device.sm_count) text += fmt::format("  {} SM", *device.sm_count);
  if (device.simulated) return text + "  SIMULATED";
  const Environment& env = record.environment;
  text += fmt::format("  driver {}", env.driver.empty() ? "n/a" : printable(env.driver));
  text += fmt::format("  CUDA {}", env.cuda.empty() ? "n/a" : printable(env.cuda));
  if (device.power_limit_w) text += fmt::format("  power limit {:.0f} W", *device.power_limit_w);
  return text;
}

std::string roof_line(const Ceilings& ceilings) {
  const std::string source = printable(ceilings.source);
  std::string text = fmt::format("roofs {}: HBM copy ", printable(ceilings.device));
  text += ceilings.hbm_copy_gbps ? fmt::format("{:.0f} GB/s", *ceilings.hbm_copy_gbps) : "n/a";
  for (const auto& [dtype, tflops] : ceilings.gemm_tflops) {
    text += fmt::format(", {} {:.0f} TFLOPS", printable(dtype), tflops);
  }
  return text + fmt::format(" ({})", source);
}

void write_header(Writer& writer, const Record& record) {
  for (const std::string& device : simulated_devices(record)) {
    writer.wrapped(fmt::format("SIMULATED: {} is a model. No GPU was measured; times and bytes "
                               "are predictions.",
                               printable(device)),
                   2, "1;33");
  }
  for (const DeviceInfo& device : record.environment.devices) {
    writer.wrapped(device_line(record, device), 2);
  }
  for (const Ceilings& ceilings : record.ceilings) writer.wrapped(roof_line(ceilings), 2);
  std::string l2 = "n/a";
  for (const Row& row : record.rows) {
    if (row.time_us) l2 = row.time_us->l2;
  }
  writer.wrapped(
      fmt::format("suite {}  {}: {}  times: median, {} L2",
                  record.suite.empty() ? "(axes)" : printable(record.suite),
                  counted(std::ssize(record.rows), "row"), status_counts(record), printable(l2)),
      2);
}

std::string render_cell(const Writer& writer, const Cell& cell, const Roofs& roofs, bool fastest) {
  if (!cell.row) return fmt::format("  {:>8} {:>6} {:>6} {:>6}", "--", "", "", "");
  if (cell.row->status != Status::ok || !cell.row->time_us) {
    return "  " + writer.red(fmt::format("{:>8}", status_word(cell.row->status))) +
           std::string(kKernelWidth - 10, ' ');
  }
  const CellText text = cell_text(cell, roofs);
  std::string time = fmt::format("{:>8}", text.time);
  if (fastest) time = writer.bold(time);
  return fmt::format("  {} {:>6} {:>6} {:>6}", time, text.tflops, text.roof, text.hbm);
}

const Row* fastest_row(const Line& line) {
  const Row* best = nullptr;
  for (const Cell& cell : line.cells) {
    if (!cell.row || !is_ranked(*cell.row)) continue;
    if (!best || cell.row->time_us->median < best->time_us->median) best = cell.row;
  }
  return best;
}

// The kernels [begin, end) of a group.
void write_block(Writer& writer, const Group& group, std::size_t begin, std::size_t end) {
  std::string head = fmt::format("{:<{}}", "", kLabelWidth);
  std::string columns = fmt::format("  {:<8}{:>4}", "seqlen", "b");
  for (std::size_t i = begin; i < end; ++i) {
    head +=
        fmt::format("  {:^{}}", printable(group.kernels[i], kKernelWidth - 2), kKernelWidth - 2);
    columns += fmt::format("  {:>8} {:>6} {:>6} {:>6}", "time", "TFLOPS", "%roof", "HBM");
  }
  writer.line(writer.bold(head));
  writer.line(columns);
  const bool simulated = std::any_of(group.lines.begin(), group.lines.end(),
                                     [](const Line& line) { return line.simulated; });
  writer.line("  " + writer.rule(kLabelWidth - 2 + kKernelWidth * static_cast<int>(end - begin) +
                                 (simulated ? kMarkWidth : 0)));
  for (const Line& line : group.lines) {
    std::string text =
        fmt::format("  {:<8}{:>4}", line_label(line), format_count(line.problem->batch));
    const Row* best = fastest_row(line);
    for (std::size_t i = begin; i < end; ++i) {
      const Cell& cell = line.cells[i];
      text += render_cell(writer, cell, group.roofs, cell.row && cell.row == best);
    }
    if (line.simulated) text += writer.yellow(" simulated");
    writer.line(text);
  }
}

void write_group(Writer& writer, const Group& group) {
  int rounds = 0;
  bool simulated = false;
  for (const Line& line : group.lines) {
    simulated |= line.simulated;
    for (const Cell& cell : line.cells) rounds = std::max(rounds, cell.rounds);
  }
  writer.line();
  std::string title = fmt::format("{}  [{}]", group_title(group), printable(group.device));
  if (rounds > 1) title += fmt::format("  middle of {} rounds", rounds);
  writer.wrapped(title, 2, "1");
  const int room = writer.options().width - kLabelWidth - (simulated ? kMarkWidth : 0);
  const std::size_t per_block = static_cast<std::size_t>(std::max(1, room / kKernelWidth));
  for (std::size_t begin = 0; begin < group.kernels.size(); begin += per_block) {
    write_block(writer, group, begin, std::min(begin + per_block, group.kernels.size()));
  }
}

void write_reasons(Writer& writer, const Record& record) {
  bool first = true;
  for (const Row& row : record.rows) {
    if (row.status == Status::ok) continue;
    if (first) {
      writer.line();
      writer.line(writer.bold("Not ok"));
    }
    first = false;
    writer.wrapped(fmt::format("  {} {}: {}", status_word(row.status), printable(row.case_id),
                               row.reason.empty() ? "no reason given" : printable(row.reason)),
                   6);
  }
}

}  // namespace

std::string render_table(const Record& record, const TableOptions& options,
                         std::string_view noise) {
  Writer writer(options);
  write_header(writer, record);
  const Pivot grid = pivot(record);
  for (const Group& group : grid.groups) write_group(writer, group);
  write_reasons(writer, record);
  writer.line();
  for (const std::string& sentence : summary_sentences(grid)) {
    writer.wrapped("Summary  " + sentence, 9, "1");
  }
  if (!noise.empty()) writer.wrapped(fmt::format("Noise  {}", printable(noise, 1000)), 7, "1");
  for (const Warning& warning : warnings(record)) {
    writer.wrapped(fmt::format("WARN  {}: {}", warning.what, warning.action), 6, "33");
  }
  writer.wrapped(
      "Columns  b: batch. TFLOPS: model FLOPs over median time. %roof: of the lower roof at the "
      "row's intensity, c compute side, m memory side of the ridge. HBM: bytes moved over the "
      "compulsory bytes (counted; predicted where simulated). n/s: not supported. T/O: time "
      "limit. n/a: not measured. --: not in this record.",
      9);
  return writer.take();
}

}  // namespace rooflash
