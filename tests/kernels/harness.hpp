// What the GPU tests share: the device and the kernels under test.
//
// Tests whose name holds "Small" are fit for compute-sanitizer, those with "SmallRace" for its slow
// racecheck tool too.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/record.hpp"
#include "gpu/device_stream.hpp"
#include "kernel.hpp"

namespace rooflash {

struct Gpu {
  DeviceStream stream;
  DeviceLimits limits;
  std::int64_t l2_bytes;
};
// Device 0, made at the first call.
const Gpu& gpu();

// One forward variant of a built-in family: the parameter of the tests over all kernels.
struct KernelVariant {
  const Kernel* kernel;
  const Variant* variant;

  bool runs_here() const;  // compiled for this GPU's architecture
  // Whether a problem is dispatched to this very variant on this GPU.
  bool serves(const Problem& problem) const;
  // Small problem in the variant's dtype that it serves: head dim 128 or 64 if it can, one mask of
  // its own.
  Problem problem() const;
  // Each mask that `problem` may have here: at most one of a kind and alignment, windows of several
  // sizes picked by `turn`.
  std::vector<Mask> masks(Problem problem, std::size_t turn) const;
};
std::vector<KernelVariant> forward_variants();
std::string name(const KernelVariant& kernel);  // "fa2_0_bf16_d64"
void PrintTo(const KernelVariant& kernel, std::ostream* out);

class Kernels : public testing::TestWithParam<KernelVariant> {
 protected:
  void SetUp() override;  // skips variants for other architectures
};

// For EXPECT_TRUE: "passed", or what the judge found.
testing::AssertionResult passed(const VerifyResult& result);

// Sizes to put into a problem, for tests of many.
struct Shape {
  std::int64_t batch, heads_q, heads_kv, seqlen_q, seqlen_kv;
};
Problem with_shape(Problem problem, const Shape& shape);

// One run on the CPU's inputs, every row judged against the CPU's fp64 reference.
void expect_reference(const KernelVariant& kernel, const Problem& problem);

inline constexpr std::uint64_t kSeed = 20250214;

}  // namespace rooflash
