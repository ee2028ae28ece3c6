// Every forward kernel against the fp64 reference of the CPU, where tiled kernels go wrong first:
// lengths beside tile edges, padded head dims, grouped heads, rows that see no key.
#include <algorithm>

#include "device_case.hpp"
#include "harness.hpp"

namespace rooflash {
namespace {

struct Heads {
  std::int64_t batch, heads_q, heads_kv;
};
constexpr Heads kHeads[] = {{1, 1, 1}, {2, 2, 2},  {3, 2, 1}, {1, 4, 2},
                            {2, 8, 1}, {1, 16, 2}, {1, 6, 3}};

struct Lengths {
  std::int64_t q, kv;
};
// Tests take kHeads in turn: the longest of these are where few heads are.
constexpr Lengths kLengths[] = {
    {1, 1},     {2, 2},     {7, 7},     {63, 63},   {64, 64},   {65, 65},   {127, 127}, {129, 129},
    {200, 200}, {1, 200},   {2, 65},    {7, 129},   {63, 64},   {65, 200},  {129, 1},   {200, 7},
    {64, 2},    {129, 127}, {200, 65},  {239, 1},   {192, 192}, {257, 385}, {191, 128}, {113, 203},
    {799, 3},   {2, 5},     {255, 127}, {193, 256}, {256, 255}, {128, 217}};

// The judge sets the largest error against that of an emulation, which says little over a few rows
// that see a key: more batch items give more of them.
void set_heads(Problem& p, const Heads& heads) {
  constexpr std::int64_t kRows = 48;
  p.heads_q = heads.heads_q;
  p.heads_kv = heads.heads_kv;
  const std::int64_t rows = p.heads_q * std::min(p.seqlen_q, p.seqlen_kv);
  p.batch = std::max(heads.batch, (kRows + rows - 1) / rows);
}

// First head dim that the kernel serves by padding, else `p`'s own.
std::int64_t padded_headdim(const KernelVariant& kernel, const Problem& p) {
  for (const std::int64_t headdim : {40, 48, 72, 80, 136, 144, 200}) {
    Problem padded = p;
    padded.headdim = padded.headdim_v = headdim;
    if (headdim < kernel.variant->headdim && kernel.serves(padded)) return headdim;
  }
  return p.headdim;
}

// A factor that is not exactly 1 where the running maximum stands adds up over the key blocks of a
// long row. The judge's bound, made for scores rounded to 16 bits, would not see it.
TEST_P(Kernels, LseDoesNotDriftOverManyKeyBlocks) {
  const KernelVariant& kernel = GetParam();
  if (kernel.kernel->name == "naive") {
    GTEST_SKIP() << kernel.kernel->name << " rounds its scores to the input's type";
  }
  Problem p = kernel.problem();
  p.batch = p.heads_q = p.heads_kv = 1;
  p.seqlen_q = 64;
  p.seqlen_kv = 32768;
  HostCase host = make_host_case(p, kSeed);
  DeviceCase device(kernel.kernel, p);
  device.upload_inputs(host);
  device.run();
  device.download_outputs(host);
  // FP8 tensor cores sum up scores with some 13 bits.
  const double tolerance = p.dtype == DType::e4m3 ? 1e-3 : 1e-5;
  for (std::int64_t row = 0; row < p.seqlen_q; row += 7) {
    const ReferenceRow reference = reference_row(p, host.tensors(), {0, 0, row});
    EXPECT_NEAR(host.lse[static_cast<std::size_t>(row)], reference.lse, tolerance) << "row " << row;
  }
}

// Scores that grow from key block to key block, so slowly that a lagging maximum moves now and
// then, towards either end.
TEST_P(Kernels, SmallGrowingScores) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.batch = p.heads_q = p.heads_kv = 1;
  p.seqlen_q = 33;
  p.seqlen_kv = 700;
  for (const bool towards_last : {true, false}) {
    HostCase host = make_host_case(p, kSeed);
    edit_inputs(p, host, [&](std::vector<float>& q, std::vector<float>& k) {
      for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
        q[static_cast<std::size_t>(row * p.headdim)] = 16;
      }
      for (std::int64_t key = 0; key < p.seqlen_kv; ++key) {
        const std::int64_t growth = (towards_last ? key : p.seqlen_kv - key) / 16;
        k[static_cast<std::size_t>(key * p.headdim)] = static_cast<float>(growth);
      }
    });
    DeviceCase device(kernel.kernel, p);
    device.upload_inputs(host);
    device.run();
    device.download_outputs(host);
    EXPECT_TRUE(passed(verify_on_host(p, host.tensors(), p.seqlen_q, kSeed)));
  }
}

// Steps so steep that every one leaves a lagging maximum behind by more than 2^64, in some rows of
// a warp and not in others, over several tiles. All rows see keys of the top step, whose scores are
// near 0: on larger ones the judge allows what 16 bits lose.
TEST_P(Kernels, SmallScoresGrowingInSteps) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  p.seqlen_q = 300;
  p.seqlen_kv = 700;
  constexpr std::int64_t kStepKeys = 100;
  constexpr std::int64_t kRise = 64;  // times 16 and the scale: 2^92 at head dim 256
  for (const bool towards_last : {true, false}) {
    HostCase host = make_host_case(p, kSeed);
    const auto headdim = static_cast<std::size_t>(p.headdim);
    edit_inputs(p, host, [&](std::vector<float>& q, std::vector<float>& k) {
      for (std::size_t i = 0; i < q.size() / headdim; ++i) {
        const std::int64_t row = static_cast<std::int64_t>(i) / p.heads_q % p.seqlen_q;
        q[i * headdim] = row % 3 == 0 ? 1 : 16;
      }
      for (std::size_t i = 0; i < k.size() / headdim; ++i) {
        const std::int64_t key = static_cast<std::int64_t>(i) / p.heads_kv % p.seqlen_kv;
        const std::int64_t below_top =
            towards_last ? p.seqlen_kv - p.seqlen_q + kStepKeys - key : key;
        const std::int64_t steps = std::max<std::int64_t>(below_top, 0) / kStepKeys;
        k[i * headdim] = static_cast<float>(-kRise * steps);
      }
    });
    const Mask window = towards_last ? Mask{MaskKind::window, Align::bottom_right, 200, kUnbounded}
                                     : Mask{MaskKind::window, Align::bottom_right, kUnbounded, 130};
    for (const Mask& mask : {Mask{MaskKind::causal}, window}) {
      p.mask = mask;
      if (!kernel.serves(p)) continue;
      SCOPED_TRACE(case_id(kernel.kernel->name, p) + (towards_last ? ", to last" : ", to first"));
      DeviceCase device(kernel.kernel, p);
      device.upload_inputs(host);
      device.run();
      device.download_outputs(host);
      EXPECT_TRUE(passed(verify_on_host(p, host.tensors(), 600, kSeed)));
    }
  }
}

TEST_P(Kernels, SmallLengths) {
  const KernelVariant& kernel = GetParam();
  const Problem base = kernel.problem();
  const std::int64_t headdims[] = {base.headdim, padded_headdim(kernel, base)};
  for (std::size_t i = 0; i < std::size(kLengths); ++i) {
    Problem p = base;
    p.seqlen_q = kLengths[i].q;
    p.seqlen_kv = kLengths[i].kv;
    const std::vector<Mask> masks = kernel.masks(p, i);
    for (std::size_t m = 0; m < masks.size(); ++m) {
      p.mask = masks[m];
      set_heads(p, kHeads[(i + m) % std::size(kHeads)]);
      p.headdim = p.headdim_v = headdims[(i + m) % std::size(headdims)];
      expect_reference(kernel, p);
    }
  }
}

// Few queries on many keys, in groups of heads: kernels may cut the keys into parts or put the
// heads of a group into one tile. The last has tiles enough without parts.
TEST_P(Kernels, SmallShortQueries) {
  const KernelVariant& kernel = GetParam();
  struct Short {
    Heads heads;
    Lengths lengths;
  };
  std::size_t turn = 0;
  for (const auto& [heads, lengths] :
       {Short{{1, 8, 1}, {1, 700}}, Short{{2, 6, 2}, {5, 1300}}, Short{{1, 64, 1}, {33, 650}},
        Short{{1, 65, 1}, {1, 600}}, Short{{1, 12, 1}, {9, 900}}, Short{{70, 8, 2}, {3, 77}}}) {
    Problem p = kernel.problem();
    set_heads(p, heads);
    p.seqlen_q = lengths.q;
    p.seqlen_kv = lengths.kv;
    for (const Mask& mask : kernel.masks(p, turn++)) {
      p.mask = mask;
      expect_reference(kernel, p);
    }
  }
}

// One query, one key, one head. Constant inputs, whose sums are exact: there is but one row to
// compare.
TEST_P(Kernels, SmallSingleRow) {
  Problem p = GetParam().problem();
  p.distribution = Distribution::constant;
  for (const Mask& mask : GetParam().masks(p, 0)) {
    p.mask = mask;
    expect_reference(GetParam(), p);
  }
}

TEST_P(Kernels, SmallHeaddims) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.seqlen_q = 65;
  p.seqlen_kv = 129;
  set_heads(p, {1, 4, 2});
  struct Headdims {
    std::int64_t qk, v;
  };
  int served = 0;
  for (const auto& [qk, v] :
       {Headdims{8, 8}, Headdims{16, 16}, Headdims{24, 24}, Headdims{40, 40}, Headdims{64, 64},
        Headdims{72, 72}, Headdims{96, 96}, Headdims{120, 120}, Headdims{128, 128},
        Headdims{192, 192}, Headdims{256, 256}, Headdims{512, 512}, Headdims{64, 40},
        Headdims{40, 64}, Headdims{128, 72}, Headdims{72, 128}, Headdims{192, 128}}) {
    p.headdim = qk;
    p.headdim_v = v;
    for (const Mask& mask : kernel.masks(p, 0)) {
      p.mask = mask;
      expect_reference(kernel, p);
      ++served;
    }
  }
  // Further padded ones, with one mask each.
  auto turn = static_cast<std::size_t>(kernel.variant - kernel.kernel->variants.data());
  for (const std::int64_t headdim : {80, 88, 112, 160, 224, 248}) {
    p.headdim = p.headdim_v = headdim;
    const std::vector<Mask> masks = kernel.masks(p, 0);
    if (masks.empty()) continue;
    p.mask = masks[turn++ % masks.size()];
    expect_reference(kernel, p);
  }
  EXPECT_GT(served, 0);
}

// The same inputs twice, onto different remains in the outputs: the same bits. Few shapes that
// reach every branch, because racecheck is slow.
TEST_P(Kernels, SmallRaceRepeats) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.heads_q = 2;
  for (const Lengths& lengths :
       {Lengths{200, 129}, Lengths{65, 200}, Lengths{3, 7}, Lengths{3, 700}}) {
    p.seqlen_q = lengths.q;
    p.seqlen_kv = lengths.kv;
    for (const Mask& mask : kernel.masks(p, 0)) {
      p.mask = mask;
      SCOPED_TRACE(case_id(kernel.kernel->name, p));
      DeviceCase device(kernel.kernel, p);
      device.make_inputs(kSeed);
      device.run(0xFF);
      const std::vector<std::byte> first = device.output_bytes();
      device.run(0x7F);
      EXPECT_TRUE(first == device.output_bytes()) << "two runs differ";
    }
  }
}

// As on a GPU of two SMs: a CTA of a persistent kernel goes on to a second tile and further ones,
// where what is left of the one before can harm.
TEST_P(Kernels, SmallRaceManyTilesEach) {
  constexpr int kSmCount = 2;
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.heads_q = 6;
  p.heads_kv = 2;
  std::size_t turn = 5;  // begins with windows that whole key blocks lie inside
  for (const Distribution distribution : {Distribution::normal, Distribution::peaky}) {
    p.distribution = distribution;
    for (const Lengths& lengths : {Lengths{400, 330}, Lengths{400, 70}, Lengths{70, 400}}) {
      p.seqlen_q = lengths.q;
      p.seqlen_kv = lengths.kv;
      HostCase host = make_host_case(p, kSeed);
      for (const Mask& mask : kernel.masks(p, turn++)) {
        p.mask = mask;
        SCOPED_TRACE(case_id(kernel.kernel->name, p));
        DeviceCase device(kernel.kernel, p, kSmCount);
        device.upload_inputs(host);
        device.run(0xFF);
        const std::vector<std::byte> first = device.output_bytes();
        device.run(0x7F);
        EXPECT_TRUE(first == device.output_bytes()) << "two runs differ";
        device.download_outputs(host);
        EXPECT_TRUE(passed(verify_on_host(p, host.tensors(), 800, kSeed)));
      }
    }
  }
}

}  // namespace
}  // namespace rooflash
