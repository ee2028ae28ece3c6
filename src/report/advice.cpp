#include "report/advice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

#include "core/units.hpp"
#include "report/pivot.hpp"
#include "report/roofs.hpp"

namespace rooflash {
namespace {

constexpr double kReread = 1.5;        // HBM bytes over compulsory bytes
constexpr double kAboveRoofPct = 102;  // 2 % is the roofs' own noise
constexpr double kTail = 0.1;          // share of the last wave that is idle
constexpr double kLaunchBoundUs = 10;  // the event window has an error of a microsecond
constexpr double kSlowClock = 0.9;     // of the highest SM clock
constexpr double kUselessWork = 1.1;   // tensor operations over model FLOPs
constexpr double kBusyXuPct = 60;      // of the unit that computes exponentials
constexpr double kFp8Speedup = 1.2;    // that pays for quantising
constexpr double kFarFromRoofPct = 40;
constexpr double kModelTime = 0.25;  // of the measured time that a prediction may be off
constexpr double kModelBytes = 0.15;

// A rule that applies to a row: how much it matters there, and why.
struct Finding {
  double weight = 0;  // to choose the row that is shown
  OptDouble gain_pct;
  std::string evidence;
};

using Fastest = std::map<std::string, const Row*>;  // by problem

struct Subject {
  const Record& record;
  const Row& row;
  const Roofs& roofs;
  const Fastest& bf16;
};

struct Rule {
  Advice::Kind kind;
  const char* title;
  const char* next;
  std::optional<Finding> (*find)(const Subject&);
};

const DeviceInfo* device_of(const Record& record, const Row& row) {
  for (const DeviceInfo& device : record.environment.devices) {
    if (device.device == row.device) return &device;
  }
  return nullptr;
}

std::optional<Finding> rereads(const Subject& subject) {
  const Row& row = subject.row;
  const OptDouble ratio = bytes_over_compulsory(row);
  if (!ratio || *ratio <= kReread) return std::nullopt;
  Finding found{*ratio, std::nullopt,
                fmt::format("{} of HBM traffic, {}x the compulsory {}",
                            format_gib(*hbm_bytes(row).bytes), significant(*ratio),
                            format_gib(static_cast<double>(row.model.compulsory_bytes)))};
  if (subject.roofs.hbm_gbps && row.time_us && row.time_us->median > 0) {
    const double extra = *hbm_bytes(row).bytes - static_cast<double>(row.model.compulsory_bytes);
    const double extra_us = extra / *subject.roofs.hbm_gbps / 1e3;
    found.gain_pct = 100 * std::min(1.0, extra_us / row.time_us->median);
    found.evidence +=
        fmt::format("; the rest takes {} of {} at {:.0f} GB/s", format_time_us(extra_us),
                    format_time_us(row.time_us->median), *subject.roofs.hbm_gbps);
    found.weight = *found.gain_pct;
  }
  return found;
}

std::optional<Finding> above_roof(const Subject& subject) {
  const OptDouble pct = subject.row.derived.roof_pct;
  if (!pct || *pct <= kAboveRoofPct) return std::nullopt;
  return Finding{*pct, std::nullopt, fmt::format("{} % of the roof", significant(*pct))};
}

std::optional<Finding> useless_work(const Subject& subject) {
  const Row& row = subject.row;
  if (!row.counters.tensor_ops || row.model.flops <= 0) return std::nullopt;
  const double ratio = *row.counters.tensor_ops / row.model.flops;
  if (ratio <= kUselessWork) return std::nullopt;
  return Finding{ratio, 100 * (1 - 1 / ratio),
                 fmt::format("{} GFLOP on the tensor cores for {} GFLOP that are needed",
                             significant(*row.counters.tensor_ops / 1e9, 4),
                             significant(row.model.flops / 1e9, 4))};
}

std::optional<Finding> busy_exponentials(const Subject& subject) {
  const Counters& counters = subject.row.counters;
  if (!counters.xu_pipe_pct || *counters.xu_pipe_pct <= kBusyXuPct) return std::nullopt;
  if (counters.tensor_pipe_pct && *counters.tensor_pipe_pct > *counters.xu_pipe_pct) {
    return std::nullopt;
  }
  return Finding{
      *counters.xu_pipe_pct, std::nullopt,
      fmt::format("the unit of exponentials and conversions is busy for {} % of the "
                  "time, the tensor pipe for {}",
                  significant(*counters.xu_pipe_pct),
                  counters.tensor_pipe_pct ? significant(*counters.tensor_pipe_pct) + " %"
                                           : std::string("an unknown share"))};
}

std::optional<Finding> idle_pipes(const Subject& subject) {
  const Row& row = subject.row;
  const Counters& counters = row.counters;
  if (roof_side(subject.roofs, intensity(row)) != 'c' || !counters.tensor_pipe_pct ||
      row.derived.roof_pct.value_or(100) >= kFarFromRoofPct ||
      *counters.tensor_pipe_pct >= kFarFromRoofPct) {
    return std::nullopt;
  }
  return Finding{
      100 - *row.derived.roof_pct, std::nullopt,
      fmt::format("{} % of the roof on its compute side, the tensor pipe busy for {} % "
                  "of the time",
                  significant(*row.derived.roof_pct), significant(*counters.tensor_pipe_pct))};
}

std::optional<Finding> small_grid(const Subject& subject) {
  const OptDouble waves = subject.row.resources.waves;
  if (!waves || *waves <= 0) return std::nullopt;
  const double idle = 1 - *waves / std::ceil(*waves);
  if (idle <= kTail) return std::nullopt;
  return Finding{
      idle, 100 * idle,
      fmt::format("{} blocks are {} waves: {:.0f} % of the SMs' time is idle",
                  subject.row.resources.grid.value_or(0), significant(*waves), 100 * idle)};
}

std::optional<Finding> spills(const Subject& subject) {
  const OptInt bytes = subject.row.resources.spill_bytes;
  if (!bytes || *bytes <= 0) return std::nullopt;
  return Finding{static_cast<double>(*bytes), std::nullopt,
                 fmt::format("{} bytes of registers are spilled to memory", *bytes)};
}

std::optional<Finding> launch_bound(const Subject& subject) {
  const Row& row = subject.row;
  if (!row.time_us || row.simulated || row.time_us->median >= kLaunchBoundUs) return std::nullopt;
  return Finding{1 / row.time_us->median, std::nullopt,
                 fmt::format("takes {}, of which a microsecond or more is the launch",
                             format_time_us(row.time_us->median))};
}

std::optional<Finding> slow_clock(const Subject& subject) {
  const Row& row = subject.row;
  const DeviceInfo* device = device_of(subject.record, row);
  if (!device || !device->sm_clock_max_mhz || !row.clock_mhz || !row.clock_mhz->median) {
    return std::nullopt;
  }
  const double share = *row.clock_mhz->median / *device->sm_clock_max_mhz;
  if (share >= kSlowClock) return std::nullopt;
  std::string evidence = fmt::format("SM clock {:.0f} of at most {:.0f} MHz",
                                     *row.clock_mhz->median, *device->sm_clock_max_mhz);
  if (row.power_w) evidence += fmt::format(", {:.0f} W", *row.power_w);
  if (device->power_limit_w) evidence += fmt::format(" of {:.0f} W", *device->power_limit_w);
  if (!row.throttle.empty()) evidence += fmt::format(", {}", fmt::join(row.throttle, ", "));
  return Finding{1 - share, std::nullopt, std::move(evidence)};
}

// A problem in bf16, whatever its options, on one device and in one round.
std::string bf16_key(const Row& row) {
  Problem problem = row.problem;
  problem.dtype = DType::bf16;
  problem.options.clear();
  return fmt::format("{}\n{}\n{}", row.device, case_id("", problem), row.round);
}

// Against the fastest kernel on the same problem in bf16.
std::optional<Finding> slow_fp8(const Subject& subject) {
  const Row& row = subject.row;
  if (row.problem.dtype != DType::e4m3 || !is_ranked(row)) return std::nullopt;
  const auto best = subject.bf16.find(bf16_key(row));
  if (best == subject.bf16.end()) return std::nullopt;
  const double speedup = best->second->time_us->median / row.time_us->median;
  if (speedup >= kFp8Speedup) return std::nullopt;
  return Finding{
      1 / speedup, std::nullopt,
      fmt::format("{}x as fast as {} in bf16", significant(speedup), kernel_label(*best->second))};
}

// "as predicted", or "1.31 of the predicted".
std::string against_model(OptDouble measured, OptDouble predicted) {
  if (!measured || !predicted || !(*predicted > 0)) return "not both known";
  const double ratio = *measured / *predicted;
  if (std::abs(ratio - 1) <= kModelBytes) return "as predicted";
  return significant(ratio) + " of the predicted";
}

// Measured rows alone: a simulated one is its own prediction.
std::optional<Finding> unpredicted(const Subject& subject) {
  const Row& row = subject.row;
  if (!row.time_us || row.simulated || !row.model.predicted_time_us) return std::nullopt;
  const double ratio = row.time_us->median / *row.model.predicted_time_us;
  if (std::abs(1 / ratio - 1) <= kModelTime) return std::nullopt;
  const Counters& counters = row.counters;
  OptDouble sm_l2;
  if (counters.sm_l2_read_bytes && counters.sm_l2_write_bytes) {
    sm_l2 = *counters.sm_l2_read_bytes + *counters.sm_l2_write_bytes;
  }
  std::string evidence =
      fmt::format("took {} and {} were predicted; HBM bytes {}, SM to L2 bytes {}",
                  format_time_us(row.time_us->median), format_time_us(*row.model.predicted_time_us),
                  against_model(hbm_bytes(row).bytes, row.model.predicted_hbm_bytes),
                  against_model(sm_l2, row.model.predicted_sm_l2_bytes));
  if (row.clock_mhz && row.clock_mhz->median) {
    evidence += fmt::format("; at {:.0f} MHz", *row.clock_mhz->median);
  }
  constexpr std::size_t kNameLimit = 60;
  for (std::size_t i = 0; i < row.kernels_run.size(); ++i) {
    evidence += (i == 0 ? "; ran " : ", ") + row.kernels_run[i].substr(0, kNameLimit);
  }
  return Finding{std::abs(std::log(ratio)), std::nullopt, std::move(evidence)};
}

constexpr Rule kRules[] = {
    {Advice::Kind::optimise, "moves bytes again that it already had",
     "Keep the tile on chip, or fuse the kernels that pass it on through HBM", rereads},
    {Advice::Kind::optimise, "computes what the mask hides",
     "Skip the tiles that no query sees; pad less", useless_work},
    {Advice::Kind::optimise, "waits for exponentials",
     "Overlap softmax with the products, or compute part of the exponentials on the FMA units",
     busy_exponentials},
    {Advice::Kind::optimise, "leaves the tensor cores idle",
     "Look for stalls: ncu's warp state and source counters of this case", idle_pipes},
    {Advice::Kind::optimise, "leaves SMs idle at the end",
     "Smaller tiles, split keys, or a persistent grid", small_grid},
    {Advice::Kind::optimise, "spills registers", "Smaller tiles or more threads a block", spills},
    {Advice::Kind::optimise, "gains little from fp8",
     "Count the cost of quantising, and check that the fp8 tensor path is taken", slow_fp8},
    {Advice::Kind::warn, "is above a measured roof",
     "Measure the roofs again (rooflash ceilings --refresh): a count or a unit may be wrong",
     above_roof},
    {Advice::Kind::warn, "is short enough to be bound by its launch",
     "Do not read differences of a microsecond; time a larger batch", launch_bound},
    {Advice::Kind::warn, "ran at a lowered clock", "Compare in cycles, or within this record alone",
     slow_clock},
    {Advice::Kind::warn, "is far from the time that the model predicts",
     "Where the bytes agree, the time goes where the model does not look: profile the case",
     unpredicted},
};

}  // namespace

std::vector<Advice> advice(const Record& record) {
  // By rule, kernel and device, in the order of the rules.
  std::map<std::tuple<std::size_t, std::string, std::string>, std::pair<Advice, double>> found;
  std::map<std::tuple<std::string, std::string, DType>, Roofs> roofs;
  Fastest bf16;
  for (const Row& row : record.rows) {
    if (row.problem.dtype != DType::bf16 || !is_ranked(row)) continue;
    const Row*& best = bf16[bf16_key(row)];
    if (!best || row.time_us->median < best->time_us->median) best = &row;
  }
  for (const Row& row : record.rows) {
    if (row.status != Status::ok) continue;
    const auto [known, added] =
        roofs.try_emplace({row.device, row.gpu, row.problem.dtype}, Roofs{});
    if (added) known->second = roofs_of(record, row.device, row.gpu, row.problem.dtype);
    const Subject subject{record, row, known->second, bf16};
    for (std::size_t i = 0; i < std::size(kRules); ++i) {
      const Rule& rule = kRules[i];
      std::optional<Finding> finding = rule.find(subject);
      if (!finding) continue;
      auto& [item, weight] = found[{i, kernel_label(row), row.device}];
      if (++item.rows > 1 && finding->weight <= weight) continue;
      weight = finding->weight;
      const int rows = item.rows;
      item = {rule.kind,
              kernel_label(row),
              row.device,
              rule.title,
              rows,
              std::move(finding->evidence),
              finding->gain_pct,
              rule.next,
              row.case_id};
    }
  }
  std::vector<Advice> result;
  for (auto& [key, item] : found) result.push_back(std::move(item.first));
  std::stable_sort(result.begin(), result.end(), [](const Advice& a, const Advice& b) {
    return a.gain_pct.value_or(-1) > b.gain_pct.value_or(-1);
  });
  return result;
}

}  // namespace rooflash
