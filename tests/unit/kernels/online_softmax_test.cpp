// The host algorithms against fp64 where the running maximum matters: scores that grow over the key
// blocks, slowly and by leaps, in either direction, and far from 0.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/two_level_memory.hpp"
#include "kernel.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

constexpr std::int64_t kKeys = 400;
constexpr std::int64_t kHeaddim = 64;
constexpr std::int64_t kSram = 228L << 10U;

double value_of(std::int64_t key) {
  return static_cast<double>(key % 7) - 3;
}

// One query whose score of each key is given: the first column of K holds it, as often as the scale
// of 1 / 8 takes away.
void expect_softmax(const Kernel& kernel, DType dtype,
                    const std::function<double(std::int64_t)>& score_of) {
  Problem p;
  p.dtype = dtype;
  p.batch = p.heads_q = p.heads_kv = p.seqlen_q = 1;
  p.seqlen_kv = kKeys;
  p.headdim = p.headdim_v = kHeaddim;
  if (find_variant(kernel, p, 0, nullptr) == nullptr) return;
  std::vector<float> q(kHeaddim), k(kKeys * kHeaddim), v(kKeys * kHeaddim), o(kHeaddim), lse(1);
  q[0] = 8;
  double largest = -INFINITY;
  for (std::int64_t key = 0; key < kKeys; ++key) {
    k[static_cast<std::size_t>(key * kHeaddim)] = static_cast<float>(score_of(key));
    v[static_cast<std::size_t>(key * kHeaddim)] = static_cast<float>(value_of(key));
    largest = std::max(largest, score_of(key));
  }
  double sum = 0;
  double weighted = 0;
  for (std::int64_t key = 0; key < kKeys; ++key) {
    const double weight = std::exp(score_of(key) - largest);
    sum += weight;
    weighted += weight * value_of(key);
  }
  TwoLevelMemory memory(kSram);
  kernel.host(p, {q.data(), k.data(), v.data(), o.data(), lse.data()}, kernel.tile(p, kSram),
              memory);
  EXPECT_NEAR(lse[0], largest + std::log(sum), 3e-5) << kernel.name;
  EXPECT_NEAR(o[0], weighted / sum, 0.02) << kernel.name;
}

void expect_softmax(const std::function<double(std::int64_t)>& score_of) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->hidden || kernel->provider != "builtin") continue;
    for (const DType dtype : {DType::bf16, DType::fp16}) expect_softmax(*kernel, dtype, score_of);
  }
}

TEST(OnlineSoftmax, SlowGrowth) {
  for (const double step : {0.25, 1.0, 4.0}) {
    expect_softmax([&](std::int64_t key) { return step * static_cast<double>(key / 16); });
    expect_softmax([&](std::int64_t key) { return -step * static_cast<double>(key / 16); });
  }
}

TEST(OnlineSoftmax, Leaps) {
  for (const std::int64_t leap : {1, 64, 200, 399}) {
    expect_softmax([&](std::int64_t key) { return key < leap ? 0.0 : 40.0; });
    expect_softmax([&](std::int64_t key) { return key < leap ? 5.0 : 0.0; });
    expect_softmax([&](std::int64_t key) { return key == leap ? 5.5 : 0.0; });
  }
}

TEST(OnlineSoftmax, FarFromZero) {
  for (const double offset : {-200.0, -120.0, 120.0}) {
    expect_softmax([&](std::int64_t key) { return offset + static_cast<double>(key % 3); });
    expect_softmax([&](std::int64_t key) { return offset + static_cast<double>(key / 50); });
  }
}

}  // namespace
}  // namespace rooflash
