#include "report/roofs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/pivot.hpp"

namespace rooflash {
namespace {

OptDouble find(const std::map<std::string, double>& rates, DType dtype) {
  const auto found = rates.find(std::string(to_string(dtype)));
  if (found == rates.end()) return std::nullopt;
  return found->second;
}

}  // namespace

Roofs roofs_of(const Record& record, const std::string& device, const std::string& gpu,
               DType dtype) {
  for (const Ceilings& ceilings : record.ceilings) {
    if (ceilings.device != device) continue;
    return {ceilings.hbm_copy_gbps ? ceilings.hbm_copy_gbps : ceilings.hbm_read_gbps,
            find(ceilings.gemm_tflops, dtype), ceilings.source};
  }
  for (const Datasheet& sheet : record.datasheet) {
    if (sheet.gpu != gpu) continue;
    return {sheet.hbm_gbps, find(sheet.tensor_tflops, dtype), "datasheet, dense"};
  }
  return {};
}

HbmBytes hbm_bytes(const Row& row) {
  const Counters& counters = row.counters;
  if (counters.hbm_read_bytes && counters.hbm_write_bytes) {
    return {*counters.hbm_read_bytes + *counters.hbm_write_bytes, false};
  }
  if (row.simulated) return {row.model.predicted_hbm_bytes, true};
  return {};
}

OptDouble intensity(const Row& row) {
  if (row.status != Status::ok) return std::nullopt;
  if (row.derived.intensity_flop_per_byte) return row.derived.intensity_flop_per_byte;
  const OptDouble bytes = hbm_bytes(row).bytes;
  if (!bytes || *bytes <= 0) return std::nullopt;
  return row.model.flops / *bytes;
}

OptDouble compulsory_intensity(const Row& row) {
  if (row.model.compulsory_bytes <= 0) return std::nullopt;
  return row.model.flops / static_cast<double>(row.model.compulsory_bytes);
}

OptDouble bytes_over_compulsory(const Row& row) {
  const OptDouble bytes = hbm_bytes(row).bytes;
  if (!bytes || row.status != Status::ok || row.model.compulsory_bytes <= 0) return std::nullopt;
  return *bytes / static_cast<double>(row.model.compulsory_bytes);
}

OptDouble paper_flops(const Row& row) {
  const Problem& p = row.problem;
  if (p.mask.kind == MaskKind::window) return std::nullopt;
  double pairs = static_cast<double>(p.seqlen_q) * static_cast<double>(p.seqlen_kv);
  if (p.mask.kind == MaskKind::causal) pairs /= 2;
  const double heads = static_cast<double>(p.batch) * static_cast<double>(p.heads_q);
  const double forward = 2 * heads * pairs * static_cast<double>(p.headdim + p.headdim_v);
  const double flops = p.pass == Pass::fwd ? forward : 2.5 * forward;
  if (std::fabs(flops - row.model.flops) <= 1e-3 * row.model.flops) return std::nullopt;
  return flops;
}

std::string flops_text(const Row& row) {
  std::string text = significant(row.model.flops / 1e9, 4) + " GFLOP";
  if (const OptDouble flops = paper_flops(row)) {
    text += fmt::format(" (the papers count {})", significant(*flops / 1e9, 4));
  }
  return text;
}

char roof_side(const Roofs& roofs, OptDouble flop_per_byte) {
  if (!roofs.hbm_gbps || !roofs.tensor_tflops || !flop_per_byte || *roofs.hbm_gbps <= 0) return 0;
  const double ridge = *roofs.tensor_tflops * 1e3 / *roofs.hbm_gbps;
  return *flop_per_byte < ridge ? 'm' : 'c';
}

std::string missing_reason(const Row& row, const std::string& path) {
  const auto found = row.missing.find(path);
  if (found != row.missing.end() && !found->second.empty()) return found->second;
  if (row.status != Status::ok) {
    const std::string status(to_string(row.status));
    return row.reason.empty() ? status : status + ": " + row.reason;
  }
  if (row.simulated) return "simulated";
  if (path.starts_with("counters.") || path.starts_with("derived.")) {
    if (!row.counters.reason.empty()) return row.counters.reason;
    if (row.counters.status != "ok") return "counters " + row.counters.status;
  }
  return "not measured";
}

bool has_flag(const Row& row, std::string_view flag) {
  return std::find(row.flags.begin(), row.flags.end(), flag) != row.flags.end();
}

bool is_ranked(const Row& row) {
  return row.status == Status::ok && row.time_us && row.time_us->median > 0 &&
         !has_flag(row, "implausible");
}

}  // namespace rooflash
