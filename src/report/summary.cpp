#include "report/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <tuple>

#include "core/units.hpp"

namespace rooflash {
namespace {

// Geometric mean of slow / fast over the lines where both have a time.
struct Ratio {
  double log_sum = 0;
  int cases = 0;
  double value() const { return std::exp(log_sum / cases); }
};

using Times = std::map<std::string, double>;  // kernel to median time, of one line

Times times_of(const Group& group, const Line& line) {
  Times times;
  for (std::size_t i = 0; i < line.cells.size(); ++i) {
    const Row* row = line.cells[i].row;
    if (row && is_ranked(*row)) times[group.kernels[i]] = row->time_us->median;
  }
  return times;
}

Ratio ratio(const std::vector<Times>& lines, const std::string& slow, const std::string& fast) {
  Ratio result;
  for (const Times& times : lines) {
    const auto a = times.find(slow);
    const auto b = times.find(fast);
    if (a == times.end() || b == times.end()) continue;
    result.log_sum += std::log(a->second / b->second);
    ++result.cases;
  }
  return result;
}

std::map<std::string, int> count_wins(const std::vector<Times>& lines) {
  std::map<std::string, int> wins;
  for (const Times& times : lines) {
    if (times.size() < 2) continue;
    ++wins[std::min_element(times.begin(), times.end(), [](const auto& a, const auto& b) {
             return a.second < b.second;
           })->first];
  }
  return wins;
}

// Why a row has no place in the ranking.
std::string unranked_word(const Row& row) {
  if (row.status != Status::ok) return std::string(status_word(row.status));
  return has_flag(row, "implausible") ? "implausible" : "not timed";
}

// What stands beside the times of e4m3; "" where nothing was quantised.
std::string quantizing_sentence(const Pivot& pivot) {
  std::vector<double> times_us;
  std::vector<double> shares_pct;
  for (const Group& group : pivot.groups) {
    for (const Line& line : group.lines) {
      for (const Cell& cell : line.cells) {
        if (!cell.row || !cell.row->quantize_us || !cell.row->time_us) continue;
        times_us.push_back(cell.row->quantize_us->median);
        shares_pct.push_back(100 * times_us.back() / cell.row->time_us->median);
      }
    }
  }
  if (times_us.empty()) return {};
  const auto [least, most] = std::minmax_element(times_us.begin(), times_us.end());
  const auto [lowest, highest] = std::minmax_element(shares_pct.begin(), shares_pct.end());
  return fmt::format(
      "times of e4m3 are the attention's alone; quantising takes {} to {} more, {} % to {} %",
      format_time_us(*least), format_time_us(*most), significant(*lowest), significant(*highest));
}

}  // namespace

std::vector<Ranking> rank_kernels(const Pivot& pivot) {
  using Key = std::tuple<std::string, Pass, DType>;
  std::map<Key, std::vector<Times>> lines;
  std::map<Key, std::map<std::string, Ratio>> tflops;
  std::map<Key, std::map<std::string, std::map<std::string, int>>> unranked;
  for (const Group& group : pivot.groups) {
    const Key key{group.device, group.problem->pass, group.problem->dtype};
    for (const Line& line : group.lines) {
      lines[key].push_back(times_of(group, line));
      for (std::size_t i = 0; i < line.cells.size(); ++i) {
        const Row* row = line.cells[i].row;
        if (!row) continue;
        if (!is_ranked(*row)) ++unranked[key][group.kernels[i]][unranked_word(*row)];
        if (!is_ranked(*row) || row->derived.tflops.value_or(0) <= 0) continue;
        Ratio& mean = tflops[key][group.kernels[i]];
        mean.log_sum += std::log(*row->derived.tflops);
        ++mean.cases;
      }
    }
  }
  std::vector<Ranking> result;
  for (const auto& [key, times] : lines) {
    std::map<std::string, int> wins = count_wins(times);
    const auto& [device, pass, dtype] = key;
    std::string slowest;
    for (const std::string& kernel : pivot.kernels) {
      if (slowest.empty() && tflops[key].contains(kernel)) slowest = kernel;
    }
    for (auto kernel = pivot.kernels.rbegin(); kernel != pivot.kernels.rend(); ++kernel) {
      const auto mean = tflops[key].find(*kernel);
      if (mean == tflops[key].end()) continue;
      Ranking rank;
      rank.device = device;
      rank.dtype = to_string(dtype);
      rank.pass = to_string(pass);
      rank.kernel = *kernel;
      for (const Times& line : times) {
        rank.ranked += line.contains(*kernel);
        rank.contested += line.size() > 1 && line.contains(*kernel);
      }
      rank.wins = wins[*kernel];
      rank.unranked = unranked[key][*kernel];
      rank.geomean_tflops = mean->second.value();
      const Ratio over = ratio(times, slowest, *kernel);
      if (over.cases && slowest != *kernel) rank.speedup = over.value();
      rank.common = over.cases;
      rank.slowest = slowest;
      result.push_back(std::move(rank));
    }
  }
  return result;
}

std::vector<std::string> summary_sentences(const Pivot& pivot) {
  std::map<std::string, std::vector<Times>> devices;
  for (const Group& group : pivot.groups) {
    for (const Line& line : group.lines) devices[group.device].push_back(times_of(group, line));
  }
  std::vector<std::string> sentences;
  for (const auto& [device, lines] : devices) {
    const std::map<std::string, int> wins = count_wins(lines);
    if (wins.empty()) continue;
    const auto best = std::max_element(
        wins.begin(), wins.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    const std::string& winner = best->first;
    for (auto other = pivot.kernels.rbegin(); other != pivot.kernels.rend(); ++other) {
      const Ratio speed = ratio(lines, *other, winner);
      if (*other == winner || speed.cases == 0) continue;
      const bool faster = speed.value() >= 1;
      const double factor = faster ? speed.value() : 1 / speed.value();
      sentences.push_back(fmt::format(
          "{} is {}x {} than {} (geomean of {}{})", printable(winner),
          significant(factor, factor < 2 ? 3 : 2), faster ? "faster" : "slower", printable(*other),
          counted(speed.cases, "case"), devices.size() > 1 ? ", " + printable(device) : ""));
    }
  }
  if (std::string sentence = quantizing_sentence(pivot); !sentence.empty()) {
    sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::vector<Warning> warnings(const Record& record) {
  struct Rule {
    std::function<bool(const Row&)> applies;
    const char* what;
    const char* action;
  };
  const auto flag = [](const char* name) {
    return [name](const Row& row) { return has_flag(row, name); };
  };
  const auto status = [](Status wanted) {
    return [wanted](const Row& row) { return row.status == wanted; };
  };
  const auto counters = [](const char* wanted) {
    return [wanted](const Row& row) { return row.counters.status == wanted; };
  };
  const Rule rules[] = {
      {status(Status::wrong), "wrong result, not ranked",
       "see the reason of each row; rooflash verify shows where the error is largest"},
      {flag("implausible"), "faster than the hardware allows (implausible), not ranked",
       "a clock, FLOP or byte count is wrong: run the case again alone, then rooflash doctor"},
      {status(Status::crashed), "crash", "run the row's repro command under compute-sanitizer"},
      {status(Status::timeout), "ran past the time limit", "raise --timeout or drop the shape"},
      {status(Status::failed), "failure", "see the reason of each row"},
      {[](const Row& row) { return row.status == Status::ok && row.verify.status == "skipped"; },
       "timed without verification, no gate accepts it", "run without --verify off"},
      {flag("shared_gpu"), "GPU shared with other processes",
       "stop them (nvidia-smi lists them) and run again"},
      {[](const Row& row) { return row.derived.roof_pct.value_or(0) > 100; },
       "above a measured roof", "measure the roofs again: rooflash ceilings --refresh"},
      {flag("clock_unsettled"), "SM clock moved by over 2 %",
       "compare within this run only, or run more --rounds"},
      {counters("no_permission"), "no hardware counters, not permitted",
       "ask for profiler access (rooflash doctor prints the line) or run --counters none"},
      {counters("busy"), "no hardware counters, another profiler holds them",
       "stop the other profiler and run again"},
      {counters("other_tool"), "no hardware counters, run under a profiler",
       "run without ncu or nsys to read them"},
      {counters("invalid"), "counters contradict each other",
       "do not use their bytes; run the case again alone"},
  };
  std::vector<Warning> result;
  if (!record.complete) {
    result.push_back({"this record is incomplete: the run was interrupted",
                      "finish it with the same command and --resume"});
  }
  for (const Rule& rule : rules) {
    const auto rows = std::count_if(record.rows.begin(), record.rows.end(), rule.applies);
    if (rows) {
      result.push_back({fmt::format("{} ({})", rule.what, counted(rows, "row")), rule.action});
    }
  }
  std::map<std::string, const char*> roofless;  // "cuda:0 bf16" to what to do
  for (const Row& row : record.rows) {
    const Roofs roofs = roofs_of(record, row.device, row.gpu, row.problem.dtype);
    if (!roofs.hbm_gbps || !roofs.tensor_tflops) {
      roofless.emplace(fmt::format("{} {}", printable(row.device), to_string(row.problem.dtype)),
                       row.simulated ? "the datasheet of the simulated card gives none: compare "
                                       "times, or take another dtype or card"
                                     : "measure it: rooflash ceilings");
    }
  }
  for (const auto& [name, action] : roofless) {
    result.push_back({"no roof is known for " + name, action});
  }
  return result;
}

std::vector<std::string> simulated_devices(const Record& record) {
  std::vector<std::string> devices;
  for (const Row& row : record.rows) {
    if (row.simulated && std::find(devices.begin(), devices.end(), row.device) == devices.end()) {
      devices.push_back(row.device);
    }
  }
  return devices;
}

std::string status_counts(const Record& record) {
  std::array<std::size_t, 8> counts{};
  for (const Row& row : record.rows) ++counts[static_cast<std::size_t>(row.status)];
  std::string text;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i]) continue;
    if (!text.empty()) text += ", ";
    text += fmt::format("{} {}", counts[i], to_string(static_cast<Status>(i)));
  }
  return text.empty() ? "no rows" : text;
}

}  // namespace rooflash
