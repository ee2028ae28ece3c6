#include "profile/metric_sets.hpp"

#include <algorithm>

#include "core/dtype.hpp"
#include "measure/metrics.hpp"

namespace rooflash {
namespace {

// One line of the table. `chips`: prefixes of the chips it holds for; "" for all.
struct Line {
  const char* set;
  int group;
  const char* id;
  const char* unit;
  const char* name;
  const char* meaning;
  const char* chips = "";
};

constexpr const char* kHopperOn = "GH GB";
constexpr const char* kNotGddr7 = "GV TU GA AD GH GB10";

// clang-format off
const Line kLines[] = {
    {"memory", 0, "gpu_time_ns", "ns", "gpu__time_duration.sum", "GPU time of the launch while it was counted; not a timing result"},
    {"memory", 0, "hbm_read_bytes", "bytes", "dram__bytes_read.sum", "bytes read from HBM (or GDDR)", kNotGddr7},
    {"memory", 0, "hbm_read_bytes", "bytes", "dram__bytes_op_read.sum", "bytes read from HBM (or GDDR)", "GB20"},
    {"memory", 0, "hbm_write_bytes", "bytes", "dram__bytes_write.sum", "bytes written to HBM; what is still dirty in L2 at the end is not among them", kNotGddr7},
    {"memory", 0, "hbm_write_bytes", "bytes", "dram__bytes_op_write.sum", "bytes written to HBM; what is still dirty in L2 at the end is not among them", "GB20"},
    {"memory", 0, "hbm_pct", "%", "dram__throughput.avg.pct_of_peak_sustained_elapsed", "HBM throughput over its peak"},
    {"memory", 0, "sm_l2_read_sectors", "sectors", "l1tex__m_xbar2l1tex_read_sectors.sum", "sectors of 32 bytes that arrived at the SMs from L2, TMA included"},
    {"memory", 0, "l2_read_sectors", "sectors", "lts__t_sectors_srcunit_tex_op_read.sum", "sectors of 32 bytes that L2 was asked for by SMs: fewer where requests of several SMs are merged on the way"},
    {"memory", 0, "sm_l2_write_sectors", "sectors", "lts__t_sectors_srcunit_tex_op_write.sum", "sectors of 32 bytes that the SMs wrote to L2"},
    {"memory", 0, "l2_lookup_pct", "%", "lts__t_sectors.avg.pct_of_peak_sustained_elapsed", "sectors looked up in L2, of all units, over the peak rate"},
    {"memory", 1, "l2_hit_pct", "%", "lts__t_sector_hit_rate.pct", "L2 lookups that hit"},
    {"memory", 2, "l1_hit_pct", "%", "l1tex__t_sector_hit_rate.pct", "L1 lookups that hit; copies that bypass L1 (cp.async, TMA) have none"},
    {"memory", 2, "l2_to_sm_pct", "%", "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed", "busy share of the path from L2 to the SMs"},
    {"memory", 2, "sm_to_l2_pct", "%", "lts__xbar2lts_cycles_active.avg.pct_of_peak_sustained_elapsed", "busy share of the path from the SMs to L2"},
    {"memory", 2, "tma_load_bytes", "bytes", "l1tex__m_xbar2l1tex_read_bytes_mem_global_op_tma_ld.sum", "bytes that TMA loaded", kHopperOn},
    {"memory", 2, "tma_store_bytes", "bytes", "l1tex__m_l1tex2xbar_write_bytes_mem_global_op_tma_st.sum", "bytes that TMA stored", kHopperOn},
    {"memory", 3, "local_load_sectors", "sectors", "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum", "sectors of local memory loaded: spilled registers and indexed arrays"},
    {"memory", 3, "local_store_sectors", "sectors", "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum", "sectors of local memory stored"},
    {"memory", 4, "load_sectors_per_request", "sectors", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio", "sectors that one global load of a warp touches: 4 where 32 threads read 4 bytes side by side, 16 with 16 bytes each"},
    {"memory", 4, "store_sectors_per_request", "sectors", "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio", "sectors that one global store of a warp touches"},

    {"compute", 0, "gpu_time_ns", "ns", "gpu__time_duration.sum", "GPU time of the launch while it was counted; not a timing result"},
    {"compute", 0, "sm_clock_hz", "Hz", "sm__cycles_elapsed.avg.per_second", "SM clock while it was counted"},
    {"compute", 0, "sm_busy_pct", "%", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", "time that an SM held at least one warp, average over the SMs"},
    {"compute", 0, "occupancy_pct", "%", "sm__warps_active.avg.pct_of_peak_sustained_active", "warps held by a busy SM, over the most it can hold (achieved occupancy)"},
    {"compute", 0, "tensor_pipe_pct", "%", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", "busy share of the tensor cores"},
    {"compute", 0, "xu_pipe_pct", "%", "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed", "busy share of the unit for exponentials and conversions"},
    {"compute", 1, "fma_pipe_pct", "%", "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_elapsed", "busy share of the pipes for floating-point multiply and add, and integer multiply"},
    {"compute", 1, "alu_pipe_pct", "%", "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_elapsed", "busy share of the pipe for integer, logic, comparison, minimum and maximum"},
    {"compute", 1, "lsu_pipe_pct", "%", "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed", "busy share of the pipe for loads, stores, shuffles and atomics"},
    {"compute", 1, "uniform_pipe_pct", "%", "sm__inst_executed_pipe_uniform.avg.pct_of_peak_sustained_elapsed", "busy share of the pipe for what is the same in all threads of a warp"},
    {"compute", 2, "issue_pct", "%", "smsp__issue_active.avg.pct_of_peak_sustained_active", "cycles in which a scheduler issued an instruction"},
    {"compute", 2, "instructions", "inst", "smsp__inst_executed.sum", "instructions executed, counted once a warp"},
    {"compute", 2, "sm_cycles_mean", "cycles", "sm__cycles_active.avg", "cycles that an SM held a warp: average over the SMs"},
    {"compute", 2, "sm_cycles_min", "cycles", "sm__cycles_active.min", "the same of the least busy SM"},
    {"compute", 2, "sm_cycles_max", "cycles", "sm__cycles_active.max", "the same of the busiest SM"},

    {"stalls", 0, "scheduler_warps", "warps", "smsp__warps_active.avg.per_cycle_active", "warps that a scheduler (a quarter of an SM) holds"},
    {"stalls", 0, "eligible_warps", "warps", "smsp__warps_eligible.avg.per_cycle_active", "of those, warps ready to issue"},
    {"stalls", 0, "warps_per_issue", "cycles", "smsp__average_warps_active_per_issue_active.ratio", "cycles that a warp spends per instruction, all reasons together"},

    {"smem", 0, "gpu_time_ns", "ns", "gpu__time_duration.sum", "GPU time of the launch while it was counted; not a timing result"},
    {"smem", 0, "smem_pct", "%", "l1tex__data_pipe_lsu_wavefronts_mem_shared.avg.pct_of_peak_sustained_elapsed", "busy share of the shared memory banks"},
    {"smem", 0, "smem_wavefronts", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "passes over the shared memory banks, one a cycle, tensor core reads included"},
    {"smem", 0, "smem_conflicts", "conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "of those, extra ones because of bank conflicts"},
    {"smem", 1, "smem_load_wavefronts", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum", "passes for loads (LDS, LDSM)"},
    {"smem", 1, "smem_load_conflicts", "conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "bank conflicts of loads"},
    {"smem", 1, "smem_store_wavefronts", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum", "passes for stores (STS, STSM)"},
    {"smem", 1, "smem_store_conflicts", "conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum", "bank conflicts of stores"},
    {"smem", 1, "smem_load_instructions", "inst", "smsp__inst_executed_op_shared_ld.sum", "shared loads (LDS) executed, counted once a warp"},
    {"smem", 1, "smem_store_instructions", "inst", "smsp__inst_executed_op_shared_st.sum", "shared stores (STS) executed"},
    {"smem", 1, "ldmatrix_instructions", "inst", "smsp__inst_executed_op_ldsm.sum", "ldmatrix (LDSM) executed"},
    {"smem", 2, "wgmma_wavefronts", "wavefronts", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_gmma.sum", "passes for operands that the tensor cores read (wgmma)", "GH"},
    {"smem", 2, "async_copy_conflicts", "conflicts", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ldgsts.sum", "bank conflicts of asynchronous copies (cp.async)", "GA100 AD GH GB"},
    {"smem", 2, "async_copy_instructions", "inst", "smsp__inst_executed_op_ldgsts.sum", "asynchronous copies (cp.async, LDGSTS) executed"},
};
// clang-format on

bool holds_for(const char* prefixes, std::string_view chip) {
  std::string_view rest = prefixes;
  if (rest.empty()) return true;
  while (!rest.empty()) {
    const std::string_view one = rest.substr(0, rest.find(' '));
    if (chip.starts_with(one)) return true;
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
  }
  return false;
}

bool has_stall(std::string_view chip, std::string_view reason) {
  if (reason == "gmma") return chip.starts_with("GH");
  if (reason == "imc_miss") return !chip.starts_with("GB");
  return true;
}

MetricGroup stall_group(std::string_view chip) {
  MetricGroup group;
  for (const StallReason& reason : stall_reasons()) {
    const std::string name = reason.name;
    if (!has_stall(chip, name)) continue;
    group.push_back({"stall_" + name,
                     "smsp__average_warps_issue_stalled_" + name + "_per_issue_active.ratio",
                     "cycles", std::string("per instruction, a warp ") + reason.meaning});
  }
  return group;
}

// All input types, so that it shows which ones a kernel really uses.
MetricGroup tensor_group(std::string_view chip) {
  MetricGroup group;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::e4m3}) {
    const MetricNames names = *metric_names(chip, dtype);
    for (const std::string& name : names.tensor_ops) {
      const bool warpgroup = name.find("_hgmma_") != std::string::npos;
      const bool warp = name.find("_hmma_") != std::string::npos;
      const std::string type(to_string(dtype));
      group.push_back({"tensor_ops_" + type +
                           (warpgroup ? "_wgmma"
                            : warp    ? "_mma"
                                      : ""),
                       name, "ops",
                       "operations on the tensor cores with " + type + " inputs" +
                           (warpgroup ? ", by wgmma"
                            : warp    ? ", by mma"
                                      : "") +
                           ", a multiply-add as two"});
    }
  }
  return group;
}

}  // namespace

const std::vector<std::string>& metric_set_names() {
  static const std::vector<std::string> names{"memory", "compute", "stalls", "smem"};
  return names;
}

const std::vector<std::string>& known_chips() {
  static const std::vector<std::string> chips{"GH100", "GA100", "GA102", "AD102", "GB100", "GB202"};
  return chips;
}

std::vector<MetricSet> metric_sets(std::string_view chip) {
  if (!metric_names(chip, DType::bf16)) return {};
  std::vector<MetricSet> sets{
      {"memory", "traffic of HBM, L2 and L1, hit rates, spills, coalescing", {}},
      {"compute", "pipes, tensor operations, instruction issue, occupancy, balance of the SMs", {}},
      {"stalls", "why warps do not issue: cycles per instruction by reason", {}},
      {"smem", "shared memory: use of the banks, bank conflicts", {}}};
  for (const Line& line : kLines) {
    if (!holds_for(line.chips, chip)) continue;
    MetricSet& set = *std::find_if(sets.begin(), sets.end(),
                                   [&](const MetricSet& one) { return one.name == line.set; });
    const auto group = static_cast<std::size_t>(line.group);
    if (set.groups.size() <= group) set.groups.resize(group + 1);
    set.groups[group].push_back({line.id, line.name, line.unit, line.meaning});
  }
  sets[1].groups.push_back(tensor_group(chip));
  sets[2].groups.push_back(stall_group(chip));
  return sets;
}

MetricSet run_metric_set(std::string_view chip) {
  MetricSet run{"run",
                "what a row of `rooflash run` counts, the tensor operations of its own type; one "
                "pass on GH100",
                {}};
  if (!metric_names(chip, DType::bf16)) return run;
  std::vector<std::string> names;
  for (const DType dtype : {DType::bf16, DType::fp16, DType::e4m3, DType::fp32}) {
    for (const std::string& name : metric_names(chip, dtype)->all()) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    }
  }
  run.groups = named_metrics(chip, names).groups;
  return run;
}

MetricSet named_metrics(std::string_view chip, const std::vector<std::string>& names) {
  const std::vector<MetricSet> sets = metric_sets(chip);
  MetricGroup group;
  for (const std::string& name : names) {
    Metric metric{name, name, "", ""};
    for (const MetricSet& set : sets) {
      for (const MetricGroup& known : set.groups) {
        const auto found = std::find_if(known.begin(), known.end(),
                                        [&](const Metric& one) { return one.name == name; });
        if (found != known.end()) metric = *found;
      }
    }
    group.push_back(std::move(metric));
  }
  return {"metrics", "asked for by name", {std::move(group)}};
}

const std::vector<StallReason>& stall_reasons() {
  static const std::vector<StallReason> reasons{
      {"selected", "issues", ""},
      {"not_selected", "is ready while another one issues",
       "enough warps are ready: fewer, larger ones would do"},
      {"long_scoreboard", "waits for global or local memory, or for L1",
       "start loads earlier: more stages of cp.async or TMA, or prefetch the next tile"},
      {"short_scoreboard", "waits for shared memory, an exponential or a shuffle",
       "interleave independent work between these and their use; see the smem set for conflicts"},
      {"wait", "waits for a fixed latency of its own last instruction",
       "more independent instructions in a row: unroll, or give a warp more rows"},
      {"math_pipe_throttle", "waits for a busy arithmetic pipe",
       "the pipe is the limit: see the compute set for which, and move work off it"},
      {"barrier", "waits for other warps at a barrier",
       "fewer barriers, named barriers for fewer warps, or equal work between them"},
      {"gmma", "waits for the warpgroup to arrive before wgmma",
       "issue wgmma in larger batches, and wait for the previous one as late as possible"},
      {"mio_throttle", "waits for a place in the queue of shared memory, exponentials and shuffles",
       "fewer, wider accesses to shared memory: ldmatrix with four matrices, 16-byte vectors"},
      {"lg_throttle", "waits for a place in the queue of global and local memory",
       "fewer, wider global accesses; look for register spills"},
      {"membar", "waits for a memory fence", "fewer or narrower fences"},
      {"no_instruction", "waits for its next instruction to be fetched",
       "a smaller inner loop: less unrolling, so that it fits in the instruction cache"},
      {"branch_resolving", "waits for a branch target", "fewer branches in the inner loop"},
      {"dispatch_stall", "is held back by the dispatcher", "look for register bank conflicts"},
      {"drain", "waits after its end for its stores to finish",
       "write the output in fewer, wider stores, or by TMA"},
      {"imc_miss", "waits for a constant", "fewer constants indexed at run time"},
      {"sleeping", "sleeps (nanosleep)", "shorter or no backoff in waiting loops"},
      {"tex_throttle", "waits for a place in the texture queue", "fewer texture accesses"},
      {"misc", "waits for another reason", ""},
  };
  return reasons;
}

}  // namespace rooflash
