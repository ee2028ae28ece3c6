#include "profile/occupancy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace rooflash {
namespace {

constexpr std::int64_t kWarp = 32;
constexpr std::int64_t kSchedulers = 4;      // of an SM; each has its share of the registers
constexpr std::int64_t kRegisterUnit = 256;  // a warp's registers are a multiple
constexpr std::int64_t kSmemUnit = 128;      // a block's bytes are a multiple

std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::optional<Occupancy> theoretical_occupancy(const Resources& resources, const SmLimits& limits) {
  if (!resources.registers || !resources.smem_bytes || !resources.threads || limits.warps <= 0 ||
      *resources.threads <= 0) {
    return std::nullopt;
  }
  const std::int64_t warps = round_up(*resources.threads, kWarp) / kWarp;
  const std::int64_t warp_registers =
      std::max(round_up(*resources.registers * kWarp, kRegisterUnit), kRegisterUnit);
  const std::int64_t warps_by_registers =
      limits.registers / kSchedulers / warp_registers * kSchedulers;
  const std::int64_t block_smem =
      round_up(*resources.smem_bytes + limits.smem_reserved_bytes, kSmemUnit);

  Occupancy found;
  found.by_registers = warps_by_registers / round_up(warps, kSchedulers);
  found.by_smem = block_smem > 0 ? limits.smem_bytes / block_smem : limits.blocks;
  found.by_warps = limits.warps / warps;
  found.by_blocks = limits.blocks;
  const std::int64_t least =
      std::min({found.by_registers, found.by_smem, found.by_warps, found.by_blocks});
  found.blocks = least;
  if (resources.waves && resources.grid && *resources.waves > 0 && limits.sm_count > 0) {
    // The runtime's own answer, which waves were counted with.
    found.blocks = std::llround(static_cast<double>(*resources.grid) /
                                (*resources.waves * static_cast<double>(limits.sm_count)));
  }
  found.pct = 100.0 * static_cast<double>(found.blocks * warps) / static_cast<double>(limits.warps);
  const std::pair<const char*, std::int64_t> causes[] = {{"registers", found.by_registers},
                                                         {"shared memory", found.by_smem},
                                                         {"warps", found.by_warps},
                                                         {"blocks", found.by_blocks}};
  for (const auto& [cause, blocks] : causes) {
    if (blocks == least)
      found.limiter += (found.limiter.empty() ? "" : " and ") + std::string(cause);
  }
  return found;
}

}  // namespace rooflash
