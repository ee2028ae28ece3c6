// The rules that turn figures into findings. Each looks at what was counted and says nothing where
// its figures are missing. Gains are upper bounds: what the time would lose if that one thing went
// away and nothing else took its place.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "profile/profile.hpp"

namespace rooflash {
namespace {

constexpr double kAtLimitPct = 80;   // busier than this, a unit is the limit
constexpr double kIdlePct = 60;      // where none is busier, the time goes into waiting
constexpr double kLeastGainPct = 5;  // smaller ones are not worth a line

struct Unit {
  const char* set;
  const char* id;
  const char* name;
  const char* next_step;  // where it is the limit
};
constexpr Unit kUnits[] = {
    {"memory", "hbm_pct", "HBM", "move fewer bytes: fuse, keep tiles on chip, or make L2 hit more"},
    {"memory", "l2_to_sm_pct", "the path from L2 to the SMs",
     "larger query tiles read K and V fewer times; multicast shares a tile between SMs"},
    {"compute", "tensor_pipe_pct", "the tensor cores",
     "only less work helps: skip masked tiles, pad less, or use a narrower type"},
    {"compute", "xu_pipe_pct", "the exponential unit",
     "compute part of the exponentials by polynomials on the FMA pipe"},
    {"compute", "fma_pipe_pct", "the FMA pipe",
     "fewer rescales of the accumulator; packed arithmetic"},
    {"compute", "alu_pipe_pct", "the ALU pipe",
     "fewer index computations, conversions and comparisons in the inner loop"},
    {"compute", "lsu_pipe_pct", "the load/store pipe", "wider accesses, ldmatrix, or TMA"},
    {"compute", "issue_pct", "instruction issue",
     "fewer instructions a tile: wider ones, or wgmma"},
    {"smem", "smem_pct", "shared memory",
     "operands from registers, larger warp tiles, no bank conflicts"},
};

class Rules {
 public:
  explicit Rules(const Profile& profile) : profile_(profile) {}

  std::vector<Finding> all() {
    limit();
    hbm_traffic();
    padding();
    waves();
    balance();
    occupancy();
    spills();
    bank_conflicts();
    stalls();
    coalescing("load");
    coalescing("store");
    // The limit comes first: it says what the others are worth.
    const auto rest = found_.begin() + (limit_found_ ? 1 : 0);
    std::stable_sort(rest, found_.end(), [](const Finding& a, const Finding& b) {
      return a.gain_pct.value_or(0) > b.gain_pct.value_or(0);
    });
    return std::move(found_);
  }

 private:
  OptDouble get(std::string_view set, std::string_view id) const {
    return figure(profile_, set, id);
  }

  void add(std::string what, std::string evidence, OptDouble gain_pct, std::string formula,
           std::string next_step) {
    if (gain_pct && *gain_pct < kLeastGainPct) return;
    found_.push_back(
        {std::move(what), std::move(evidence), gain_pct, std::move(formula), std::move(next_step)});
  }

  // Which unit the time is bound by. Needs both sides, or the busiest may not have been looked at.
  void limit() {
    if (!get("memory", "hbm_pct") || !get("compute", "tensor_pipe_pct")) return;
    std::vector<std::pair<double, const Unit*>> busy;
    for (const Unit& unit : kUnits) {
      if (const OptDouble pct = get(unit.set, unit.id)) busy.emplace_back(*pct, &unit);
    }
    std::stable_sort(busy.begin(), busy.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    const auto& [pct, top] = busy.front();
    std::string evidence;
    for (std::size_t i = 0; i < std::min<std::size_t>(3, busy.size()); ++i) {
      evidence +=
          fmt::format("{}{} {:.0f} %", i == 0 ? "" : ", ", busy[i].second->id, busy[i].first);
    }
    limit_found_ = true;
    if (pct >= kAtLimitPct) {
      found_.push_back(
          {fmt::format("At its limit: {}", top->name), evidence, {}, "", top->next_step});
    } else if (pct >= kIdlePct) {
      found_.push_back({fmt::format("Nearest its limit: {}", top->name), evidence, 100 - pct,
                        fmt::format("1 - {} / 100", top->id), top->next_step});
    } else {
      found_.push_back({"No unit is busy: the time goes into waiting", evidence, 100 - pct,
                        fmt::format("1 - {} / 100", top->id),
                        "overlap loads, tensor work and softmax; the stalls below say what is "
                        "waited for"});
    }
  }

  void hbm_traffic() {
    constexpr double kExcess = 1.5;
    const OptDouble read = get("memory", "hbm_read_bytes");
    const OptDouble write = get("memory", "hbm_write_bytes");
    const OptDouble pct = get("memory", "hbm_pct");
    const auto compulsory = static_cast<double>(profile_.row.model.compulsory_bytes);
    if (!read || !write || !pct || !(compulsory > 0)) return;
    const double ratio = (*read + *write) / compulsory;
    if (ratio < kExcess) return;
    const bool bound = *pct >= kIdlePct;
    add(fmt::format("HBM moves {:.3g} times the compulsory bytes", ratio),
        fmt::format("{:.4g} bytes read and {:.4g} written, {:.4g} compulsory; L2 hits {}", *read,
                    *write, compulsory, percent(get("memory", "l2_hit_pct"))),
        bound ? OptDouble(*pct * (1 - 1 / ratio)) : std::nullopt,
        bound ? "hbm_pct / 100 x (1 - compulsory / counted)" : "",
        "keep intermediate results on chip; let tiles that read the same K and V run side by side");
  }

  // Tensor operations beyond those of unmasked pairs.
  void padding() {
    const OptDouble pct = get("compute", "tensor_pipe_pct");
    const double flops = profile_.row.model.flops;
    double ops = 0;
    for (const MeasuredSet& set : profile_.sets) {
      for (const MeasuredMetric& one : set.metrics) {
        if (set.name == "compute" && one.metric.id.starts_with("tensor_ops_")) {
          ops += one.value.value_or(0);
        }
      }
    }
    if (!pct || !(ops > flops) || !(flops > 0)) return;
    const double useful = flops / ops;
    add(fmt::format("{:.0f} % of the tensor work is padding or masked", 100 * (1 - useful)),
        fmt::format("{:.4g} operations executed, {:.4g} of unmasked pairs", ops, flops),
        *pct * (1 - useful), "tensor_pipe_pct / 100 x (1 - model FLOPs / executed)",
        "smaller tiles at the diagonal and the ends, or a compiled head dim nearer to the one "
        "asked "
        "for");
  }

  void waves() {
    const OptDouble waves = profile_.row.resources.waves;
    if (!waves || !(*waves > 0)) return;
    if (*waves < 1) {
      add("The grid does not fill the GPU",
          fmt::format("{} blocks are {:.2f} of one wave", profile_.row.resources.grid.value_or(0),
                      *waves),
          100 * (1 - *waves), "1 - waves", "smaller tiles, or split the keys over several blocks");
      return;
    }
    add("The last wave of blocks is not full",
        fmt::format("{} blocks are {:.2f} waves", profile_.row.resources.grid.value_or(0), *waves),
        100 * (1 - *waves / std::ceil(*waves)), "1 - waves / ceil(waves)",
        "a tile size that divides the work better, or a persistent grid that takes tiles in turn");
  }

  void balance() {
    const OptDouble mean = get("compute", "sm_cycles_mean");
    const OptDouble max = get("compute", "sm_cycles_max");
    if (!mean || !max || !(*max > 0)) return;
    add("The SMs do not finish together",
        fmt::format(
            "{:.4g} busy cycles on average, {:.4g} on the busiest, {:.4g} on the least busy", *mean,
            *max, get("compute", "sm_cycles_min").value_or(0)),
        100 * (1 - *mean / *max), "1 - sm_cycles_mean / sm_cycles_max",
        "start the longest tiles first (the last query tiles of a causal mask), or balance them "
        "between blocks");
  }

  void occupancy() {
    constexpr double kFewPct = 50;
    constexpr double kGapPct = 15;
    if (!profile_.occupancy) return;
    const Occupancy& most = *profile_.occupancy;
    const OptDouble achieved = get("compute", "occupancy_pct");
    const double tensor = get("compute", "tensor_pipe_pct").value_or(0);
    // Kernels with producer warps and wgmma hold few warps by design.
    const bool by_design = get("memory", "tma_load_bytes").value_or(0) > 0 || uses_wgmma();
    const bool waiting = get("compute", "issue_pct").value_or(100) < kIdlePct && tensor < kIdlePct;
    if (most.pct < kFewPct && waiting && !by_design) {
      add(fmt::format("Few warps to hide latency: {} block{} on an SM, limited by {}", most.blocks,
                      most.blocks == 1 ? "" : "s", most.limiter),
          fmt::format("theoretical occupancy {:.0f} %; registers allow {}, shared memory {}, warps "
                      "{} blocks",
                      most.pct, most.by_registers, most.by_smem, most.by_warps),
          {}, "",
          "fewer registers a thread or a smaller tile, or more work in flight in each warp");
    }
    if (achieved && *achieved < most.pct - kGapPct) {
      add("Fewer warps than fit are there",
          fmt::format("occupancy {:.0f} % achieved, {:.0f} % theoretical", *achieved, most.pct), {},
          "", "look at the last wave and the balance of the SMs: blocks that end early leave gaps");
    }
  }

  void spills() {
    const double sectors = get("memory", "local_load_sectors").value_or(0) +
                           get("memory", "local_store_sectors").value_or(0);
    const std::int64_t bytes = profile_.row.resources.spill_bytes.value_or(0);
    if (!(sectors > 0) && bytes == 0) return;
    const double all = get("memory", "sm_l2_read_sectors").value_or(0) +
                       get("memory", "sm_l2_write_sectors").value_or(0);
    add("Registers spill to local memory",
        fmt::format("{} bytes of local memory a thread, {} registers; {:.4g} sectors loaded and "
                    "stored{}",
                    bytes, profile_.row.resources.registers.value_or(0), sectors,
                    all > 0 ? fmt::format(" (SMs and L2 exchange {:.4g} in all)", all) : ""),
        {}, "", "smaller tiles, fewer accumulators a thread, or a higher register limit");
  }

  void bank_conflicts() {
    const OptDouble pct = get("smem", "smem_pct");
    const OptDouble wavefronts = get("smem", "smem_wavefronts");
    const OptDouble conflicts = get("smem", "smem_conflicts");
    if (!pct || !wavefronts || !conflicts || !(*wavefronts > 0)) return;
    const double share = *conflicts / *wavefronts;
    std::string where;
    for (const auto& [kind, id] :
         {std::pair("loads", "smem_load_conflicts"), std::pair("stores", "smem_store_conflicts"),
          std::pair("asynchronous copies", "async_copy_conflicts")}) {
      const OptDouble count = get("smem", id);
      if (count && *count > 0) {
        where += fmt::format("{}{:.0f} % by {}", where.empty() ? ": " : ", ",
                             100 * *count / *conflicts, kind);
      }
    }
    add("Bank conflicts in shared memory",
        fmt::format("{:.0f} % of {:.4g} wavefronts{}", 100 * share, *wavefronts, where),
        *pct * share, "smem_pct / 100 x smem_conflicts / smem_wavefronts",
        "swizzle the tiles in shared memory, or pad their rows by 16 bytes");
  }

  // The two reasons that cost most.
  void stalls() {
    constexpr double kLeastShare = 0.2;
    const OptDouble cycles = get("stalls", "warps_per_issue");
    const OptDouble warps = get("stalls", "scheduler_warps");
    if (!cycles || !warps || !(*cycles > 0)) return;
    const double not_issued = std::max(0.0, 1 - *warps / *cycles);
    std::vector<std::pair<double, const StallReason*>> shares;
    for (const StallReason& reason : stall_reasons()) {
      const OptDouble value = get("stalls", std::string("stall_") + reason.name);
      if (!value || *reason.next_step == '\0' || reason.name == std::string_view("not_selected")) {
        continue;
      }
      shares.emplace_back(*value / *cycles, &reason);
    }
    std::stable_sort(shares.begin(), shares.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    const bool producers = get("memory", "tma_load_bytes").value_or(0) > 0;
    for (std::size_t i = 0; i < std::min<std::size_t>(2, shares.size()); ++i) {
      const auto& [share, reason] = shares[i];
      if (share < kLeastShare) continue;
      add(fmt::format("A warp {}, {:.0f} % of its time", reason->meaning, 100 * share),
          fmt::format(
              "stall_{} {:.3g} of {:.3g} cycles an instruction; a scheduler issues in {:.0f} % "
              "of the cycles{}",
              reason->name, share * *cycles, *cycles, 100 * (1 - not_issued),
              producers ? "; warps that only load wait by design, and count too" : ""),
          100 * std::min(share, not_issued),
          fmt::format("min(stall_{} / warps_per_issue, 1 - scheduler_warps / warps_per_issue)",
                      reason->name),
          reason->next_step);
    }
  }

  // 32 threads with 16 bytes each touch 16 sectors where they stand side by side.
  void coalescing(const std::string& kind) {
    constexpr double kMost = 16.5;
    const OptDouble sectors = get("memory", kind + "_sectors_per_request");
    if (!sectors || *sectors <= kMost) return;
    add(fmt::format("Global {}s are scattered", kind),
        fmt::format("a warp's {} touches {:.1f} sectors; 16 hold 16 bytes for each thread", kind,
                    *sectors),
        {}, "", "let neighbouring threads access neighbouring addresses");
  }

  bool uses_wgmma() const {
    return get("compute", "tensor_ops_bf16_wgmma").value_or(0) > 0 ||
           get("compute", "tensor_ops_fp16_wgmma").value_or(0) > 0;
  }

  static std::string percent(OptDouble value) {
    return value ? fmt::format("{:.0f} %", *value) : "not counted";
  }

  const Profile& profile_;
  std::vector<Finding> found_;
  bool limit_found_ = false;
};

}  // namespace

std::vector<Finding> find(const Profile& profile) {
  return Rules(profile).all();
}

}  // namespace rooflash
