#include "report/plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "core/units.hpp"
#include "report/pivot.hpp"
#include "report/roofs.hpp"

namespace rooflash {
namespace {

constexpr int kRows = 18;
constexpr int kMargin = 9;  // columns of the labels on the left
constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz";

// The 1, 2 or 5 times a power of ten at or below `value`.
double nice_below(double value) {
  const double decade = std::pow(10, std::floor(std::log10(value)));
  return decade * (value >= 5 * decade ? 5 : value >= 2 * decade ? 2 : 1);
}

double nice_above(double value) {
  const double below = nice_below(value);
  return below >= value * 0.999999 ? below : nice_below(below * 2.6);
}

void widen(double& low, double& high, double value) {
  while (value < low) low /= 10;
  while (value > high) high *= 10;
}

struct Point {
  std::size_t kernel = 0;
  double x = 0;
  double tflops = 0;
};

struct Panel {
  std::string title;
  Roofs roofs;
  Roofs sheet;  // of the datasheet, which sets the frame where known
  std::vector<Point> points;
  std::vector<int> counts;  // by kernel
  int bare = 0;             // rows without bytes
};

// A grid of characters with dots of a quarter of their height behind them.
class Canvas {
 public:
  Canvas(int columns, const RoofFrame& frame)
      : columns_(columns), frame_(frame), cells_(static_cast<std::size_t>(columns) * kRows) {}

  // Row and column in quarters and halves of a character.
  int fine_column(double x) const {
    return static_cast<int>(2 * columns_ * std::log(x / frame_.x_low) /
                            std::log(frame_.x_high / frame_.x_low));
  }
  int fine_row(double y) const {
    return static_cast<int>(4 * kRows * std::log(frame_.y_high / y) /
                            std::log(frame_.y_high / frame_.y_low));
  }
  double x_of(int fine_column) const {
    return frame_.x_low *
           std::pow(frame_.x_high / frame_.x_low, (fine_column + 0.5) / (2.0 * columns_));
  }

  void dot(int fine_column, int fine_row, char ascii) {
    if (fine_column < 0 || fine_column >= 2 * columns_ || fine_row < 0 || fine_row >= 4 * kRows) {
      return;
    }
    constexpr std::array<std::array<int, 2>, 4> kBits = {{{0, 3}, {1, 4}, {2, 5}, {6, 7}}};
    Cell& cell = at(fine_column / 2, fine_row / 4);
    cell.dots |=
        1U
        << kBits[static_cast<std::size_t>(fine_row % 4)][static_cast<std::size_t>(fine_column % 2)];
    cell.ascii = ascii;
  }

  void mark(const Point& point) {
    const int column = std::clamp(fine_column(point.x) / 2, 0, columns_ - 1);
    const int row = std::clamp(fine_row(point.tflops) / 4, 0, kRows - 1);
    Cell& cell = at(column, row);
    const int kernel = static_cast<int>(point.kernel);
    cell.kernel = cell.kernel < 0 || cell.kernel == kernel ? kernel : kSeveral;
  }

  std::string line(int row, const TableOptions& options) {
    std::string text;
    for (int column = 0; column < columns_; ++column) {
      const Cell& cell = at(column, row);
      if (cell.kernel >= 0) {
        const char letter =
            cell.kernel == kSeveral ? '*' : kLetters[cell.kernel % (sizeof(kLetters) - 1)];
        text += options.color && cell.kernel != kSeveral
                    ? fmt::format("\x1b[1;{}m{}\x1b[0m", 31 + cell.kernel % 6, letter)
                    : std::string(1, letter);
      } else if (cell.dots == 0) {
        text += ' ';
      } else if (options.ascii) {
        text += cell.ascii;
      } else {
        const unsigned code = 0x2800U + cell.dots;
        text += static_cast<char>(0xE0U | code >> 12U);
        text += static_cast<char>(0x80U | (code >> 6U & 0x3FU));
        text += static_cast<char>(0x80U | (code & 0x3FU));
      }
    }
    return text;
  }

 private:
  static constexpr int kSeveral = 1 << 20;
  struct Cell {
    unsigned dots = 0;
    char ascii = ' ';
    int kernel = -1;
  };
  Cell& at(int column, int row) {
    return cells_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) +
                  static_cast<std::size_t>(column)];
  }

  int columns_;
  RoofFrame frame_;
  std::vector<Cell> cells_;
};

std::string trimmed(std::string text) {
  while (text.ends_with(' ')) text.pop_back();
  return text + "\n";
}

// "1000" at the left of the row that holds a power of ten, else blank.
std::string row_label(const Canvas& canvas, const RoofFrame& frame, int row) {
  for (int e = -9; e <= 9; ++e) {
    const double value = std::pow(10, e);
    if (value >= frame.y_low && value <= frame.y_high && canvas.fine_row(value) / 4 == row) {
      return fmt::format("{:>{}} ", fmt::format("{:g}", value), kMargin - 2);
    }
  }
  return std::string(kMargin - 1, ' ');
}

std::string column_labels(const Canvas& canvas, const RoofFrame& frame, int columns) {
  std::string text(static_cast<std::size_t>(kMargin + columns), ' ');
  for (int e = -9; e <= 9; ++e) {
    const double value = std::pow(10, e);
    if (value < frame.x_low || value > frame.x_high) continue;
    const std::string label = fmt::format("{:g}", value);
    const int at = kMargin + canvas.fine_column(value) / 2 - static_cast<int>(label.size()) / 2;
    if (at < 0 || at + static_cast<int>(label.size()) > static_cast<int>(text.size())) continue;
    text.replace(static_cast<std::size_t>(at), label.size(), label);
  }
  return trimmed(text);
}

std::string render_panel(const Panel& panel, const std::vector<std::string>& kernels,
                         const TableOptions& options) {
  std::string out = panel.title + "\n";
  if (!panel.roofs.hbm_gbps || !panel.roofs.tensor_tflops) {
    return out + "  no roofs in this record: rooflash ceilings measures them\n";
  }
  const double hbm = *panel.roofs.hbm_gbps;
  const double tensor = *panel.roofs.tensor_tflops;
  RoofFrame frame = panel.sheet.hbm_gbps && panel.sheet.tensor_tflops
                        ? roof_frame(*panel.sheet.hbm_gbps, *panel.sheet.tensor_tflops)
                        : roof_frame(hbm, tensor);
  for (const Point& point : panel.points) {
    widen(frame.x_low, frame.x_high, point.x);
    widen(frame.y_low, frame.y_high, point.tflops);
  }
  const int columns = std::clamp(options.width - kMargin - 1, 30, 90);
  Canvas canvas(columns, frame);
  for (int column = 0; column < 2 * columns; ++column) {
    const double slope = hbm * canvas.x_of(column) / 1e3;
    canvas.dot(column, canvas.fine_row(std::min(slope, tensor)), slope < tensor ? '.' : '-');
  }
  for (const Point& point : panel.points) canvas.mark(point);
  out += fmt::format("{:>{}}\n", "TFLOPS", kMargin);
  for (int row = 0; row < kRows; ++row) {
    out += trimmed(row_label(canvas, frame, row) + (options.ascii ? "|" : "\u2502") +
                   canvas.line(row, options));
  }
  std::string rule(kMargin - 1, ' ');
  rule += options.ascii ? "+" : "\u2514";
  for (int column = 0; column < columns; ++column) rule += options.ascii ? "-" : "\u2500";
  out += rule + "\n" + column_labels(canvas, frame, columns);
  out += fmt::format("{:>{}}\n", "FLOP per HBM byte", kMargin + columns);
  out += fmt::format("  roof: HBM {:.0f} GB/s, {:.0f} TFLOPS ({}), ridge {} FLOP/byte\n", hbm,
                     tensor, printable(panel.roofs.source), significant(tensor * 1e3 / hbm));
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    if (panel.counts[i] == 0) continue;
    out += fmt::format("  {} {} ({})\n", kLetters[i % (sizeof(kLetters) - 1)],
                       printable(kernels[i], 60), counted(panel.counts[i], "row"));
  }
  if (panel.bare > 0) {
    out += fmt::format("  without HBM bytes, and so not drawn: {}\n", counted(panel.bare, "row"));
  }
  return out;
}

}  // namespace

RoofFrame roof_frame(double hbm_gbps, double tensor_tflops) {
  const double ridge = tensor_tflops * 1e3 / hbm_gbps;
  RoofFrame frame;
  frame.x_low = nice_below(ridge / 250);
  frame.x_high = nice_above(ridge * 100);
  frame.y_low = nice_below(hbm_gbps * frame.x_low / 1e3 / 4);
  frame.y_high = nice_above(tensor_tflops * 3.2);
  return frame;
}

std::string render_plot(const Record& record, const TableOptions& options) {
  std::vector<std::string> kernels;
  for (const Row& row : record.rows) kernels.push_back(kernel_label(row));
  std::sort(kernels.begin(), kernels.end());
  kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
  Record sheets;  // the datasheet's roofs alone
  sheets.datasheet = record.datasheet;
  std::map<std::tuple<std::string, std::string, DType>, Panel> panels;
  for (const Row& row : record.rows) {
    if (row.status != Status::ok || !row.derived.tflops) continue;
    const DType dtype = row.problem.dtype;
    const auto [found, fresh] = panels.try_emplace({row.device, row.gpu, dtype});
    Panel& panel = found->second;
    if (fresh) {
      panel.title = fmt::format("roofline {} on {} [{}]{}", to_string(dtype), printable(row.gpu),
                                printable(row.device), row.simulated ? "  SIMULATED" : "");
      panel.roofs = roofs_of(record, row.device, row.gpu, dtype);
      panel.sheet = roofs_of(sheets, row.device, row.gpu, dtype);
      panel.counts.resize(kernels.size());
    }
    const OptDouble x = intensity(row);
    if (!x || *x <= 0 || *row.derived.tflops <= 0) {
      ++panel.bare;
      continue;
    }
    const auto kernel = static_cast<std::size_t>(
        std::lower_bound(kernels.begin(), kernels.end(), kernel_label(row)) - kernels.begin());
    panel.points.push_back({kernel, *x, *row.derived.tflops});
    ++panel.counts[kernel];
  }
  std::string out;
  for (const auto& [key, panel] : panels) {
    if (!out.empty()) out += "\n";
    out += render_panel(panel, kernels, options);
  }
  return out.empty() ? "no timed rows to plot\n" : out;
}

}  // namespace rooflash
