// The test inputs. One value is a pure function of (seed, tensor, batch item, head, row, column),
// computed with integers until one correctly rounded conversion to float, so the CPU and the GPU
// agree to the bit, item i of a batch does not depend on the batch size, and any element can be
// made alone. Usable from nvcc and from g++.
#pragma once

#include <cstdint>

#include "core/problem.hpp"

#ifdef __CUDACC__
#define ROOFLASH_HD __host__ __device__
#else
#define ROOFLASH_HD
#endif

namespace rooflash {

enum class TensorId { q, k, v };

struct InputSpec {
  Distribution distribution = Distribution::normal;
  TensorId tensor = TensorId::q;
  std::uint64_t seed = 0;
  int headdim = 64;  // of Q and K, for all three tensors: it sets the spread of the scores
};

namespace generator {

// Fixed point: 20 bits after the point. 5.4 (the largest |z|) then fits float's 24 bits exactly.
inline constexpr int kFraction = 20;
inline constexpr std::int64_t kOne = std::int64_t{1} << kFraction;

// The 64-bit finaliser of SplitMix64: a bijection whose output bits all depend on all input bits.
ROOFLASH_HD constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9ULL;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBULL;
  return x ^ (x >> 31U);
}

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15ULL;  // 2^64 / golden ratio, odd

// Random bits of one element; independent streams per (seed, tensor, batch item, head).
ROOFLASH_HD constexpr std::uint64_t random_bits(const InputSpec& spec, std::int64_t batch,
                                                std::int64_t head, std::int64_t row,
                                                std::int64_t col) {
  std::uint64_t key = mix(spec.seed + kGolden);
  key = mix(key + kGolden * (static_cast<std::uint64_t>(spec.tensor) + 1));
  key = mix(key + kGolden * (static_cast<std::uint64_t>(batch) + 1));
  key = mix(key + kGolden * (static_cast<std::uint64_t>(head) + 1));
  const auto counter = (static_cast<std::uint64_t>(row) << 16U) + static_cast<std::uint64_t>(col);
  return mix(key + kGolden * (counter + 1));
}

// A standard normal value in fixed point from 41 of the bits (63 the sign, 62 to 23 the two-sided
// tail probability p). The inverse CDF is tabulated at p = 2^-k (1 - j / 16), j = 0..7: eight
// linear pieces an octave, so the tail is as fine as the middle. |z| ends at 5.42 (p = 2^-24). The
// low 20 bits stay free for other draws.
ROOFLASH_HD inline std::int64_t normal_fixed(std::uint64_t bits) {
  constexpr int kOctaves = 24;
  // round(2^20 * -Phi^-1(p / 2)), p falling.
  static constexpr std::int32_t kTable[kOctaves * 8 + 1] = {
      0,       82221,   164952,  248724,  334118,  421790,  512519,  607264,  707254,  759708,
      814137,  870854,  930241,  992773,  1059051, 1129857, 1206229, 1246929, 1289600, 1334521,
      1382035, 1432569, 1486668, 1545043, 1608642, 1642792, 1678779, 1716860, 1757350, 1800644,
      1847245, 1897810, 1953216, 1983098, 2014682, 2048208, 2083969, 2122332, 2163766, 2208882,
      2258501, 2285338, 2313762, 2343994, 2376311, 2411056, 2448669, 2489725, 2534994, 2559528,
      2585548, 2613265, 2642938, 2674892, 2709541, 2747428, 2789283, 2811999, 2836118, 2861837,
      2889402, 2919122, 2951390, 2986721, 3025808, 3047046, 3069613, 3093698, 3119535, 3147418,
      3177721, 3210935, 3247722, 3267729, 3289001, 3311719, 3336107, 3362445, 3391093, 3422519,
      3457358, 3476319, 3496489, 3518043, 3541194, 3566212, 3593441, 3623332, 3656494, 3674553,
      3693772, 3714319, 3736399, 3760271, 3786268, 3814823, 3846522, 3863793, 3882181, 3901846,
      3922988, 3945855, 3970768, 3998147, 4028556, 4045132, 4062785, 4081670, 4101980, 4123956,
      4147908, 4174241, 4203503, 4219459, 4236456, 4254645, 4274212, 4295391, 4318482, 4343878,
      4372110, 4387510, 4403918, 4421481, 4440379, 4460840, 4483155, 4507705, 4535006, 4549902,
      4565777, 4582773, 4601065, 4620875, 4642485, 4666267, 4692722, 4707160, 4722549, 4739029,
      4756768, 4775984, 4796951, 4820031, 4845712, 4859731, 4874676, 4890682, 4907915, 4926586,
      4946963, 4969398, 4994369, 5008002, 5022538, 5038109, 5054876, 5073046, 5092878, 5114719,
      5139033, 5152311, 5166470, 5181638, 5197975, 5215680, 5235009, 5256300, 5280006, 5292953,
      5306762, 5321557, 5337494, 5354768, 5373630, 5394409, 5417550, 5430191, 5443673, 5458121,
      5473685, 5490558, 5508984, 5529286, 5551900, 5564254, 5577432, 5591556, 5606772, 5623269,
      5641288, 5661144, 5683264};
  std::uint64_t tail = (bits >> 23U) & ((std::uint64_t{1} << 40U) - 1);
  int octave = 0;
  while (octave < kOctaves && (tail >> 39U) == 0) {
    tail <<= 1U;
    ++octave;
  }
  constexpr int kFar = kOctaves * 8;  // the last entry
  std::int64_t z = kTable[kFar];
  if (octave < kOctaves) {
    // Distance below the octave's upper end, in 2^-39 of the octave: 3 bits of index, 36 within.
    const std::uint64_t below = ((std::uint64_t{1} << 40U) - 1) - tail;
    const int index = octave * 8 + static_cast<int>(below >> 36U);
    const auto within = static_cast<std::int64_t>((below >> 16U) & ((1U << 20U) - 1));
    z = kTable[index] + (((kTable[index + 1] - kTable[index]) * within) >> 20);
  }
  return (bits >> 63U) != 0 ? -z : z;
}

// Largest integer whose square is at most `x`.
ROOFLASH_HD constexpr std::int64_t integer_sqrt(std::int64_t x) {
  std::int64_t root = 0;
  for (std::int64_t bit = std::int64_t{1} << 31; bit > 0; bit >>= 1) {
    const std::int64_t next = root + bit;
    if (next <= 3037000499 && next * next <= x) root = next;
  }
  return root;
}

// The value in fixed point.
ROOFLASH_HD inline std::int64_t value_fixed(const InputSpec& spec, std::uint64_t bits) {
  const std::int64_t z = normal_fixed(bits);
  const bool is_v = spec.tensor == TensorId::v;
  switch (spec.distribution) {
    case Distribution::normal:
      return z;
    case Distribution::outlier: {
      // N(0,1) + N(0,100) * Bernoulli(0.001), as in the FlashAttention-3 paper, section 4.3.
      const bool outlier = (bits & 0xFFFFFU) < 1049;  // 0.001 * 2^20
      return outlier ? z + 10 * normal_fixed(mix(bits + kGolden)) : z;
    }
    case Distribution::large:
      return 100 * z;
    case Distribution::negative: {
      // Q around a, K around -a with d a^2 / sqrt(d) = 120: every score is near -120, which a
      // running maximum that starts at 0 or at a small negative number gets wrong.
      if (is_v) return z;
      const std::int64_t root_d = integer_sqrt(std::int64_t{spec.headdim} << 20);  // 2^10 sqrt(d)
      const std::int64_t a = integer_sqrt((std::int64_t{120} << 50) / root_d);
      return (spec.tensor == TensorId::q ? a : -a) + z / 4;
    }
    case Distribution::constant:
      if (is_v) return kOne * 3 / 4;
      return spec.tensor == TensorId::q ? kOne : kOne / 2;
    case Distribution::biased:
      return is_v ? 2 * kOne + z : z;
    case Distribution::biased_less:
      return is_v ? kOne * 3 / 10 + z : z;
    case Distribution::peaky:
      // Scores have the variance of Q times that of K: 30^2.
      return is_v ? z : (z * 5743287) / kOne;  // 2^20 sqrt(30)
  }
  return 0;
}

}  // namespace generator

// The element, not yet rounded to the problem's dtype: callers round to nearest even. `head` is a
// query head for Q and a KV head for K and V; `col` is below 65536.
ROOFLASH_HD inline float input_value(const InputSpec& spec, std::int64_t batch, std::int64_t head,
                                     std::int64_t row, std::int64_t col) {
  const std::uint64_t bits = generator::random_bits(spec, batch, head, row, col);
  return static_cast<float>(generator::value_fixed(spec, bits)) *
         (1.0F / static_cast<float>(generator::kOne));
}

}  // namespace rooflash
