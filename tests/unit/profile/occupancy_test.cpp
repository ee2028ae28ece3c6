#include "profile/occupancy.hpp"

#include <gtest/gtest.h>

namespace rooflash {
namespace {

// Of one SM of an H200: 64 warps, 32 blocks, 65,536 registers, 228 KiB.
constexpr SmLimits kHopper{132, 64, 32, 65536, 233472, 1024};

Resources kernel(std::int64_t registers, std::int64_t threads, std::int64_t smem_bytes) {
  Resources resources;
  resources.registers = registers;
  resources.threads = threads;
  resources.smem_bytes = smem_bytes;
  return resources;
}

// By hand: 128 threads are 4 warps, one on each of the four register files of 16,384.
TEST(Occupancy, ByRegisters) {
  // 168 x 32 = 5,376 registers a warp (21 x 256): 3 warps a register file, so 3 blocks.
  const Occupancy found = *theoretical_occupancy(kernel(168, 128, 0), kHopper);
  EXPECT_EQ(found.by_registers, 3);
  EXPECT_EQ(found.blocks, 3);
  EXPECT_DOUBLE_EQ(found.pct, 100.0 * 12 / 64);
  EXPECT_EQ(found.limiter, "registers");
  // 33 x 32 = 1,056 is rounded up to 1,280: 12 warps a file, not 15.
  EXPECT_EQ(theoretical_occupancy(kernel(33, 128, 0), kHopper)->by_registers, 12);
}

TEST(Occupancy, BySharedMemory) {
  // 96 KiB and the reserved KiB: 99,328 bytes, twice in 233,472.
  const Occupancy found = *theoretical_occupancy(kernel(32, 128, 98304), kHopper);
  EXPECT_EQ(found.by_smem, 2);
  EXPECT_EQ(found.limiter, "shared memory");
  // 113 KiB fit twice, one byte more is rounded up to 128 and does not.
  EXPECT_EQ(theoretical_occupancy(kernel(32, 128, 115712), kHopper)->by_smem, 2);
  EXPECT_EQ(theoretical_occupancy(kernel(32, 128, 115713), kHopper)->by_smem, 1);
}

TEST(Occupancy, ByWarpsAndBlocks) {
  const Occupancy warps = *theoretical_occupancy(kernel(16, 1024, 0), kHopper);
  EXPECT_EQ(warps.blocks, 2);
  EXPECT_DOUBLE_EQ(warps.pct, 100);
  EXPECT_EQ(warps.limiter, "warps");
  // One warp a block: a block takes a place in each register file.
  const Occupancy blocks = *theoretical_occupancy(kernel(16, 32, 0), kHopper);
  EXPECT_EQ(blocks.blocks, 32);
  EXPECT_EQ(blocks.limiter, "registers and blocks");
}

TEST(Occupancy, ABlockThatDoesNotFit) {
  const Occupancy found = *theoretical_occupancy(kernel(255, 1024, 0), kHopper);
  EXPECT_EQ(found.blocks, 0);
  EXPECT_DOUBLE_EQ(found.pct, 0);
}

TEST(Occupancy, TheRuntimeHasTheLastWord) {
  Resources resources = kernel(168, 128, 0);
  resources.grid = 528;
  resources.waves = 2;  // 528 blocks on 132 SMs: 2 on each
  const Occupancy found = *theoretical_occupancy(resources, kHopper);
  EXPECT_EQ(found.blocks, 2);
  EXPECT_DOUBLE_EQ(found.pct, 100.0 * 8 / 64);
  EXPECT_EQ(found.limiter, "registers");
}

TEST(Occupancy, NeedsItsFigures) {
  Resources resources = kernel(32, 128, 0);
  resources.registers.reset();
  EXPECT_FALSE(theoretical_occupancy(resources, kHopper));
  EXPECT_FALSE(theoretical_occupancy(kernel(32, 128, 0), {}));
}

}  // namespace
}  // namespace rooflash
