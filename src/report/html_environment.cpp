// The sections that say what was measured, on what and how.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "core/units.hpp"
#include "report/data_table.hpp"
#include "report/escape.hpp"
#include "report/html_prose.hpp"
#include "report/pivot.hpp"

namespace rooflash {
namespace {

// A definition list; values are plain text.
using Facts = std::vector<std::pair<std::string, std::string>>;

std::string facts_html(const Facts& facts) {
  std::string out = "<dl>";
  for (const auto& [name, value] : facts) {
    out += fmt::format("<dt>{}</dt><dd>{}</dd>", escape_html(shortened(name)),
                       value.empty() ? "n/a: not recorded" : escape_html(shortened(value, 2000)));
  }
  return out + "</dl>\n";
}

template <class Value>
std::string shown(const std::optional<Value>& value, const char* unit) {
  return value ? fmt::format("{}{}", *value, unit) : "n/a: not recorded";
}

std::string yes_no(const std::optional<bool>& value) {
  if (!value) return "n/a: not recorded";
  return *value ? "on" : "off";
}

std::string device_facts(const DeviceInfo& device) {
  const auto gib = [](OptInt bytes) {
    return bytes ? format_gib(static_cast<double>(*bytes)) : std::string("n/a: not recorded");
  };
  return "<h3>" + escape_html(shortened(device.device + ": " + device.name)) +
         (device.simulated ? " (simulated)" : "") + "</h3>\n" +
         facts_html(
             {{"SMs", shown(device.sm_count, "")},
              {"compute capability", device.compute_capability
                                         ? fmt::format("{}.{}", *device.compute_capability / 10,
                                                       *device.compute_capability % 10)
                                         : "n/a: not recorded"},
              {"SM clock, highest", shown(device.sm_clock_max_mhz, " MHz")},
              {"memory clock, highest", shown(device.memory_clock_max_mhz, " MHz")},
              {"memory", gib(device.memory_bytes)},
              {"L2", gib(device.l2_bytes)},
              {"power limit", shown(device.power_limit_w, " W")},
              {"ECC", yes_no(device.ecc)},
              {"MIG", yes_no(device.mig)},
              {"other processes at the start", shown(device.other_processes, "")},
              {"uuid (hash)", device.uuid_hash}});
}

// "gemm bf16 620 TFLOPS" of each type.
std::string rates_text(std::string_view what, const std::map<std::string, double>& rates) {
  std::string text;
  for (const auto& [type, rate] : rates) {
    text += fmt::format("{}{} {} {} TFLOPS", text.empty() ? "" : "; ", what, type,
                        significant(rate, 4));
  }
  return text;
}

// The roofs inside the GPU, the costs of a launch, and the roofs under sustained load.
void add_unit_roofs(Facts& facts, const Ceilings& ceilings) {
  const auto line = [&](const char* name, std::initializer_list<std::string> parts) {
    std::vector<std::string> known;
    for (const std::string& part : parts) {
      if (!part.empty()) known.push_back(part);
    }
    if (known.empty()) return;
    facts.emplace_back(fmt::format("{} of {}", name, ceilings.device),
                       fmt::format("{}", fmt::join(known, "; ")));
  };
  const auto rate = [](const char* name, OptDouble value, const char* unit) {
    return value ? fmt::format("{} {} {}", name, significant(*value, 4), unit) : std::string();
  };
  if (const auto& units = ceilings.units) {
    line("units", {rate("L2 read", units->l2_read_gbps, "GB/s"),
                   rate("shared memory read", units->smem_read_gbps, "GB/s"),
                   rates_text("tensor", units->tensor_tflops),
                   rates_text("mma.sync", units->mma_sync_tflops),
                   rate("exponentials", units->exp_gops, "10^9/s"),
                   rate("fp32 FMA", units->fp32_tflops, "TFLOPS")});
  }
  if (const auto& launch = ceilings.launch) {
    line("launch costs", {rate("between events", launch->event_us, "us"),
                          rate("further kernel in a stream", launch->stream_us, "us"),
                          rate("in a graph", launch->graph_us, "us"),
                          rate("seen by the host", launch->host_us, "us")});
  }
  if (const auto& sustained = ceilings.sustained) {
    line("sustained roofs", {rate("HBM copy", sustained->hbm_copy_gbps, "GB/s"),
                             rates_text("GEMM", sustained->gemm_tflops),
                             rates_text("tensor", sustained->tensor_tflops)});
  }
}

std::string ceiling_facts(const Record& record) {
  Facts facts;
  for (const Ceilings& c : record.ceilings) {
    std::string text = fmt::format("HBM copy {}, read {}, write {}",
                                   c.hbm_copy_gbps ? significant(*c.hbm_copy_gbps, 4) : "n/a",
                                   c.hbm_read_gbps ? significant(*c.hbm_read_gbps, 4) : "n/a",
                                   c.hbm_write_gbps ? significant(*c.hbm_write_gbps, 4) : "n/a");
    text += " GB/s";
    for (const auto& [dtype, rate] : c.gemm_tflops) {
      text += fmt::format("; GEMM {} {} TFLOPS", dtype, significant(rate, 4));
    }
    facts.emplace_back(fmt::format("ceilings of {} ({})", c.device, c.source), text);
    add_unit_roofs(facts, c);
  }
  for (const Datasheet& d : record.datasheet) {
    std::string text = "HBM " + (d.hbm_gbps ? significant(*d.hbm_gbps, 4) : "n/a") + " GB/s";
    for (const auto& [dtype, rate] : d.tensor_tflops) {
      text += fmt::format("; {} {} TFLOPS", dtype, significant(rate, 4));
    }
    facts.emplace_back("datasheet, dense: " + d.gpu, text + ". Source: " + d.source);
  }
  return facts.empty() ? "<p>No ceilings in this record: rooflash ceilings measures them.</p>\n"
                       : facts_html(facts);
}

// How the rows were made: the distinct values of each, in order of first appearance.
template <class Get>
std::string distinct(std::span<const ReportRun> runs, Get get) {
  std::vector<std::string> values;
  for (const ReportRun& run : runs) {
    for (const Row& row : run.record->rows) {
      const std::string value = get(row);
      if (!value.empty() && std::find(values.begin(), values.end(), value) == values.end()) {
        values.push_back(value);
      }
    }
  }
  return fmt::format("{}", fmt::join(values, ", "));
}

}  // namespace

std::string environment_html(std::span<const ReportRun> runs) {
  std::string out;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Record& record = *runs[i].record;
    const Environment& env = record.environment;
    if (runs.size() > 1) out += "<h3>" + escape_html(runs[i].name) + "</h3>\n";
    out +=
        facts_html({{"command", fmt::format("{}", fmt::join(env.argv, " "))},
                    {"date", env.date},
                    {"suite", record.suite.empty() ? "typed as axes" : record.suite},
                    {"seed", fmt::format("{}", record.seed)},
                    {"complete", record.complete ? "yes" : "no: interrupted"},
                    {"build", record.tool.build},
                    {"driver", env.driver},
                    {"CUDA", env.cuda},
                    {"cuDNN", env.cudnn.empty() ? "none found" : env.cudnn},
                    {"visible devices", env.visible_devices.empty() ? "all" : env.visible_devices},
                    {"host (hash)", env.host_hash}});
    out += ceiling_facts(record);
    for (const DeviceInfo& device : env.devices) out += device_facts(device);
  }
  return out;
}

std::string method_html(std::span<const ReportRun> runs) {
  const auto timing = [](std::string TimeUs::*member) {
    return
        [member](const Row& row) { return row.time_us ? (*row.time_us).*member : std::string(); };
  };
  const std::string aligned = distinct(runs, [](const Row& row) {
    return row.problem.mask.kind == MaskKind::none ? std::string()
                                                   : std::string(to_string(row.problem.mask.align));
  });
  return facts_html(
      {{"FLOP convention",
        distinct(runs, [](const Row& row) { return row.model.convention + ": "; }) +
            "forward 2 b h pairs (d + dv), backward 2 b h pairs (3 d + 2 dv), with the exact "
            "number of visible (query, key) pairs. GQA does not change it."},
       {"masks", aligned.empty() ? "none used"
                                 : "aligned " + aligned +
                                       ". bottom-right: query i sees keys j <= i + sk - sq; "
                                       "top-left: j <= i. Window bounds are inclusive."},
       {"timer", distinct(runs, timing(&TimeUs::timer))},
       {"L2 before each launch", distinct(runs, timing(&TimeUs::l2))},
       {"power", distinct(runs, timing(&TimeUs::power))},
       {"sampling ended by", distinct(runs, timing(&TimeUs::stopped_by))},
       {"inputs",
        distinct(runs,
                 [](const Row& row) { return std::string(to_string(row.problem.distribution)); })},
       {"time", "median of all samples of a row; its 95 % interval; no sample is dropped"},
       {"least change found",
        "the change in time that 9 of 10 comparisons with as many rounds of another record of the "
        "same noise would tell from none; needs 5 rounds"},
       {"TFLOPS", "model FLOPs over median time (10^12 per second)"},
       {"hardware TFLOPS", "tensor operations counted over median time"},
       {"compulsory bytes",
        "each input read once, each output written once, KV with KV heads. A row that sees no key "
        "needs no Q, so a kernel that skips such rows can move less"},
       {"the papers' FLOP count",
        "half of all pairs for causal, backward 2.5 x forward; shown in the case detail where it "
        "differs from the exact count by over 0.1 %"},
       {"HBM bytes", "read and written, from hardware counters; on simulated rows predicted"},
       {"intensity", "model FLOPs over HBM bytes"},
       {"% of roof", "TFLOPS over the lower of the HBM and the tensor roof at the row's intensity"},
       {"verified",
        "against an fp64 reference before timing; the tolerance follows the error of "
        "same-precision arithmetic"},
       {"implausible",
        "faster than the datasheet's memory rate or operations per clock allow: "
        "listed, never ranked"}});
}

}  // namespace rooflash
