#include "report/row_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/units.hpp"
#include "report/pivot.hpp"

namespace rooflash {

DataCell text_cell(std::string text) {
  return {std::move(text), std::nullopt};
}

DataCell missing_cell(const Row& row, const char* path) {
  return text_cell("n/a: " + missing_reason(row, path));
}

DataCell value_cell(const Row& row, const char* path, OptDouble value, const char* unit) {
  if (!value) return missing_cell(row, path);
  return {significant(*value, 4) + unit, value};
}

DataCell bytes_cell(const Row& row, const char* path, OptDouble value) {
  if (!value) return missing_cell(row, path);
  return {format_gib(*value), value};
}

DataCell time_cell(const Row& row, const char* path, OptDouble value_us) {
  if (!value_us) return missing_cell(row, path);
  return {format_time_us(*value_us), value_us};
}

std::string roof_text(const Roofs& roofs) {
  if (!roofs.hbm_gbps || !roofs.tensor_tflops) return "n/a: no ceilings of this device";
  return fmt::format("{:.0f} GB/s, {:.0f} TFLOPS ({})", *roofs.hbm_gbps, *roofs.tensor_tflops,
                     roofs.source);
}

OptDouble quotient(OptDouble a, OptDouble b) {
  if (!a || !b || *b <= 0) return std::nullopt;
  return *a / *b;
}

std::string flags_text(const Row& row) {
  std::vector<std::string> flags = row.flags;
  for (const std::string& reason : row.throttle) flags.push_back("throttle: " + reason);
  return flags.empty() ? "none" : fmt::format("{}", fmt::join(flags, ", "));
}

std::string verify_text(const VerifyResult& verify) {
  std::string text = verify.status;
  if (!verify.shape.empty()) text += " at " + verify.shape;
  if (verify.max_abs_err && verify.tolerance_max) {
    text += fmt::format(", max error {} of {}", significant(*verify.max_abs_err, 2),
                        significant(*verify.tolerance_max, 2));
  }
  if (verify.unquantized_rms_err) {
    text += fmt::format(", RMSE {} against unquantised inputs",
                        significant(*verify.unquantized_rms_err, 2));
  }
  if (!verify.rows_checked.empty()) text += ", rows " + verify.rows_checked;
  return text;
}

std::string resources_text(const Row& row) {
  const Resources& r = row.resources;
  if (!r.registers && !r.smem_bytes) return "n/a: " + missing_reason(row, "resources");
  const auto show = [](OptInt value) { return value ? fmt::format("{}", *value) : "n/a"; };
  return fmt::format("{} registers, {} spilled bytes, {} bytes smem, {} threads, grid {}{}",
                     show(r.registers), show(r.spill_bytes), show(r.smem_bytes), show(r.threads),
                     show(r.grid), r.waves ? fmt::format(", {} waves", significant(*r.waves)) : "");
}

std::string reason_text(const Row& row) {
  std::string reason = row.reason.empty() ? "no reason given" : row.reason;
  if (row.memory.needed_bytes && row.memory.free_bytes) {
    reason += fmt::format(" (needs {}, free {})",
                          format_gib(static_cast<double>(*row.memory.needed_bytes)),
                          format_gib(static_cast<double>(*row.memory.free_bytes)));
  }
  return reason;
}

}  // namespace rooflash
