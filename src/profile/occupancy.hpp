// Theoretical occupancy: how many blocks of a kernel an SM can hold, and what limits them.
#pragma once

#include <optional>
#include <string>

#include "core/record.hpp"
#include "profile/counted.hpp"

namespace rooflash {

struct Occupancy {
  std::int64_t blocks = 0;  // on one SM; what the CUDA runtime says, where `waves` is known
  double pct = 0;           // warps of these blocks over the most an SM holds
  // Blocks that each resource alone would allow.
  std::int64_t by_registers = 0;
  std::int64_t by_smem = 0;
  std::int64_t by_warps = 0;
  std::int64_t by_blocks = 0;
  std::string limiter;  // "registers", "shared memory", "warps", "blocks"; joined by " and "
};

// For compute capability 8.0 and newer (allocation in units of 256 registers a warp and 128 bytes
// of shared memory). Empty where a figure of `resources` is missing.
std::optional<Occupancy> theoretical_occupancy(const Resources& resources, const SmLimits& limits);

}  // namespace rooflash
