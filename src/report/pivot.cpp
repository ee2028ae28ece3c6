#include "report/pivot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "core/units.hpp"

namespace rooflash {
namespace {

using GroupKey =
    std::tuple<std::string, int, int, std::int64_t, std::int64_t, std::int64_t, std::int64_t, int,
               int, std::int64_t, std::int64_t, int, std::map<std::string, std::string>>;
using LineKey = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
using Rounds = std::vector<const Row*>;

GroupKey group_key(const Row& row) {
  const Problem& p = row.problem;
  return {row.device,
          static_cast<int>(p.pass),
          static_cast<int>(p.dtype),
          p.headdim,
          p.headdim_v,
          p.heads_q,
          p.heads_kv,
          static_cast<int>(p.mask.kind),
          static_cast<int>(p.mask.align),
          p.mask.left,
          p.mask.right,
          static_cast<int>(p.distribution),
          p.options};
}

LineKey line_key(const Row& row) {
  return {row.problem.seqlen_kv, row.problem.seqlen_q, row.problem.batch};
}

Cell make_cell(Rounds rows) {
  const int rounds = static_cast<int>(rows.size());
  const auto bad = std::find_if(rows.begin(), rows.end(), [](const Row* row) {
    return row->status != Status::ok || !row->time_us;
  });
  if (bad != rows.end()) return {*bad, rounds};
  std::stable_sort(rows.begin(), rows.end(), [](const Row* a, const Row* b) {
    return a->time_us->median < b->time_us->median;
  });
  return {rows[(rows.size() - 1) / 2], rounds};
}

// Slowest first, by the geometric mean of time over the fastest time of the same line.
std::vector<std::string> kernel_order(const std::vector<Group>& groups) {
  struct Sum {
    double log_ratio = 0;
    int lines = 0;
  };
  std::map<std::string, Sum> sums;
  for (const Group& group : groups) {
    for (const std::string& kernel : group.kernels) sums[kernel];
    for (const Line& line : group.lines) {
      double best = INFINITY;
      for (const Cell& cell : line.cells) {
        if (cell.row && is_ranked(*cell.row)) best = std::min(best, cell.row->time_us->median);
      }
      for (std::size_t i = 0; i < line.cells.size(); ++i) {
        const Row* row = line.cells[i].row;
        if (!row || !is_ranked(*row)) continue;
        sums[group.kernels[i]].log_ratio += std::log(row->time_us->median / best);
        ++sums[group.kernels[i]].lines;
      }
    }
  }
  std::vector<std::string> order;
  for (const auto& [kernel, sum] : sums) order.push_back(kernel);
  const auto slowness = [&](const std::string& kernel) {
    const Sum& sum = sums.at(kernel);
    return sum.lines ? sum.log_ratio / sum.lines : -1.0;
  };
  std::stable_sort(order.begin(), order.end(), [&](const std::string& a, const std::string& b) {
    return slowness(a) > slowness(b);
  });
  return order;
}

void reorder(Group& group, const std::vector<std::string>& order) {
  std::vector<std::size_t> from;
  std::vector<std::string> kernels;
  for (const std::string& kernel : order) {
    const auto found = std::find(group.kernels.begin(), group.kernels.end(), kernel);
    if (found == group.kernels.end()) continue;
    from.push_back(static_cast<std::size_t>(found - group.kernels.begin()));
    kernels.push_back(kernel);
  }
  group.kernels = std::move(kernels);
  for (Line& line : group.lines) {
    std::vector<Cell> cells;
    for (const std::size_t i : from) cells.push_back(line.cells[i]);
    line.cells = std::move(cells);
  }
}

std::string mask_text(const Mask& mask) {
  if (mask.kind == MaskKind::none) return "full";
  std::string text(to_string(mask.kind));
  if (mask.kind == MaskKind::window) {
    const auto bound = [](std::int64_t v) { return v < 0 ? "inf" : fmt::format("{}", v); };
    text += fmt::format(" {},{}", bound(mask.left), bound(mask.right));
  }
  if (mask.align == Align::top_left) text += " top-left";
  return text;
}

// `value` for a column of six characters.
std::string narrow(double value) {
  if (value > 0 && value < 0.001) return "<0.001";
  return value > 0 && value < 0.1 ? fmt::format("{:.3f}", value) : significant(value);
}

}  // namespace

Pivot pivot(const Record& record) {
  std::map<GroupKey, std::map<LineKey, std::map<std::string, Rounds>>> grid;
  for (const Row& row : record.rows) {
    grid[group_key(row)][line_key(row)][kernel_label(row)].push_back(&row);
  }
  Pivot result;
  for (auto& [key, lines] : grid) {
    Group group;
    for (const auto& [line, cells] : lines) {
      for (const auto& [kernel, rows] : cells) group.kernels.push_back(kernel);
    }
    std::sort(group.kernels.begin(), group.kernels.end());
    group.kernels.erase(std::unique(group.kernels.begin(), group.kernels.end()),
                        group.kernels.end());
    for (const auto& [line_id, cells] : lines) {
      const Row& first = *cells.begin()->second.front();
      Line line{&first.problem, first.simulated, {}};
      for (const std::string& kernel : group.kernels) {
        const auto found = cells.find(kernel);
        line.cells.push_back(found == cells.end() ? Cell{} : make_cell(found->second));
      }
      group.lines.push_back(std::move(line));
      group.device = first.device;
      if (!first.gpu.empty()) group.gpu = first.gpu;
    }
    group.problem = group.lines.front().problem;
    group.roofs = roofs_of(record, group.device, group.gpu, group.problem->dtype);
    result.groups.push_back(std::move(group));
  }
  result.kernels = kernel_order(result.groups);
  for (Group& group : result.groups) reorder(group, result.kernels);
  return result;
}

std::string group_title(const Group& group) {
  const Problem& p = *group.problem;
  std::string text = fmt::format("{} {} d{}", to_string(p.pass), to_string(p.dtype), p.headdim);
  if (p.headdim_v != p.headdim) text += fmt::format("-{}", p.headdim_v);
  text += fmt::format(" {}, {}", mask_text(p.mask), counted(p.heads_q, "head"));
  if (p.heads_kv != p.heads_q) text += " on " + counted(p.heads_kv, "KV head");
  if (p.distribution != Distribution::normal) {
    text += fmt::format(", {} inputs", to_string(p.distribution));
  }
  for (const auto& [name, value] : p.options) {
    text += fmt::format(", {}={}", printable(name), printable(value));
  }
  return text;
}

std::string line_label(const Line& line) {
  const Problem& p = *line.problem;
  if (p.seqlen_q == p.seqlen_kv) return format_count(p.seqlen_kv);
  return format_count(p.seqlen_q) + " x " + format_count(p.seqlen_kv);
}

std::string_view status_word(Status status) {
  switch (status) {
    case Status::ok:
      return "ok";
    case Status::unsupported:
      return "n/s";
    case Status::wrong:
      return "WRONG";
    case Status::failed:
      return "FAIL";
    case Status::oom:
      return "OOM";
    case Status::crashed:
      return "CRASH";
    case Status::timeout:
      return "T/O";
    case Status::not_run:
      return "not run";
  }
  return "?";
}

std::string kernel_label(const Row& row) {
  if (row.provider == "builtin" || row.provider.empty()) return row.kernel;
  if (row.kernel.find(row.provider) != std::string::npos) return row.kernel;
  return row.provider + ":" + row.kernel;
}

CellText cell_text(const Cell& cell, const Roofs& roofs) {
  const Row& row = *cell.row;
  CellText text;
  text.time = format_time_us(row.time_us->median);
  text.tflops = row.derived.tflops ? narrow(*row.derived.tflops) : "n/a";
  if (row.derived.roof_pct) {
    text.roof = fmt::format("{:.0f}", *row.derived.roof_pct);
    if (const char side = roof_side(roofs, intensity(row))) text.roof += fmt::format(" {}", side);
  } else {
    text.roof = "n/a";
  }
  const OptDouble ratio = bytes_over_compulsory(row);
  text.hbm = ratio ? significant(*ratio) + "x" : "n/a";
  if (has_flag(row, "implausible")) text.tflops += "!";
  return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return "n/a";
  if (value == 0) return "0";
  const int exponent = static_cast<int>(std::floor(std::log10(std::fabs(value))));
  return fmt::format("{:.{}f}", value, std::clamp(digits - 1 - exponent, 0, 12));
}

}  // namespace rooflash
