// Counted bytes of the host algorithms against the closed forms, and hand-worked figures.
#include <gtest/gtest.h>

#include <vector>

#include "common/two_level_memory.hpp"
#include "core/fp8.hpp"
#include "kernel.hpp"
#include "registry.hpp"

namespace rooflash {
namespace naive {
extern const Kernel kKernel;
}
namespace sdpa {
extern const Kernel kKernel;
}
namespace fa1 {
extern const Kernel kKernel;
}
namespace fa2 {
extern const Kernel kKernel;
}
namespace {

struct Counted {
  std::int64_t read, write, sram_peak, slow_peak;
};

Counted run_host(const Kernel& kernel, const Problem& p, Tile tile, std::int64_t sram) {
  const auto zeros = [](std::int64_t n) { return std::vector<float>(static_cast<std::size_t>(n)); };
  const std::vector<float> q = zeros(q_elements(p)), k = zeros(k_elements(p)),
                           v = zeros(v_elements(p));
  const std::vector<float> scales = zeros(scale_elements(p));
  std::vector<float> o = zeros(o_elements(p)), lse = zeros(lse_elements(p));
  TwoLevelMemory memory(sram);
  kernel.host(p,
              {q.data(), k.data(), v.data(), o.data(), lse.data(), place_scales(p, scales.data())},
              tile, memory);
  return {memory.read_bytes(), memory.write_bytes(), memory.sram_peak_bytes(),
          memory.slow_peak_bytes()};
}

Mask causal(Align align = Align::bottom_right) {
  return {MaskKind::causal, align};
}
Mask window(std::int64_t left, std::int64_t right, Align align = Align::bottom_right) {
  return {MaskKind::window, align, left, right};
}

std::vector<Problem> shapes() {
  struct Size {
    std::int64_t b, hq, hkv, sq, sk, d, dv;
  };
  std::vector<Problem> problems;
  for (const Size& s : {Size{1, 1, 1, 1, 1, 64, 64},
                        {2, 4, 2, 130, 67, 64, 64},
                        {1, 3, 1, 65, 200, 40, 64},
                        {1, 2, 2, 257, 129, 128, 72},
                        {2, 2, 1, 7, 300, 96, 128},
                        {1, 2, 1, 70, 130, 192, 128},
                        {1, 1, 1, 65, 80, 256, 224},
                        {1, 1, 1, 300, 7, 64, 8}}) {
    for (const Mask& mask : {Mask{}, causal(), causal(Align::top_left), window(10, 0),
                             window(30, 20), window(kUnbounded, 5, Align::top_left)}) {
      for (const DType dtype : {DType::bf16, DType::fp16, DType::fp32, DType::e4m3}) {
        Problem p;
        p.dtype = dtype;
        p.batch = s.b;
        p.heads_q = s.hq;
        p.heads_kv = s.hkv;
        p.seqlen_q = s.sq;
        p.seqlen_kv = s.sk;
        p.headdim = s.d;
        p.headdim_v = s.dv;
        p.mask = mask;
        problems.push_back(p);
      }
    }
  }
  return problems;
}

TEST(Traffic, CountedBytesEqualTheClosedForm) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->hidden || kernel->provider != "builtin") continue;
    for (const Problem& p : shapes()) {
      if (find_variant(*kernel, p, 0, nullptr) == nullptr) continue;
      for (const std::int64_t sram : {4L << 10U, 24L << 10U, 228L << 10U}) {
        const Tile tile = kernel->tile(p, sram);
        const Traffic traffic = kernel->traffic(p, tile);
        const Counted counted = run_host(*kernel, p, tile, sram);
        ASSERT_EQ(counted.read, traffic.read_bytes()) << case_id(kernel->name, p) << " " << sram;
        ASSERT_EQ(counted.write, traffic.write_bytes()) << case_id(kernel->name, p) << " " << sram;
        ASSERT_LE(counted.sram_peak, sram);
        double of_stages = 0;
        for (const Stage& stage : traffic.stages) of_stages += stage.sm_l2_bytes;
        ASSERT_EQ(of_stages, static_cast<double>(counted.read + counted.write));
        auto* workspace = kernel->workspace_bytes;
        ASSERT_EQ(counted.slow_peak, workspace == nullptr ? 0 : workspace(p));
      }
    }
  }
}

TEST(Traffic, EveryByteOfEachTensorIsMovedAtLeastOnce) {
  for (const Kernel* kernel : kernels()) {
    if (kernel->hidden || kernel->provider != "builtin") continue;
    Problem p;
    p.dtype = kernel->variants.front().dtype;
    p.seqlen_q = p.seqlen_kv = 512;
    for (const Stream& stream : kernel->traffic(p, kernel->tile(p, 200'000)).streams) {
      EXPECT_GE(stream.read_bytes + stream.write_bytes, stream.unique_bytes) << stream.tensor;
    }
  }
}

std::int64_t scores_bytes(std::int64_t seqlen, DType dtype) {
  Problem p;
  p.dtype = dtype;
  p.seqlen_q = p.seqlen_kv = seqlen;
  return naive::kKernel.workspace_bytes(p);
}

TEST(Traffic, ScoresOfOneHead) {
  EXPECT_EQ(scores_bytes(8192, DType::fp32), 256LL << 20U);
  EXPECT_EQ(scores_bytes(4096, DType::fp16), 32LL << 20U);
}

// Eight query blocks of 128 rows, each reads all 1024 keys of 64 x 2 bytes, K and V.
TEST(Traffic, Fa2FullByHand) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = 1024;
  const Traffic t = fa2::kKernel.traffic(p, {128, 64});
  EXPECT_EQ(t.read_bytes(), 1024 * 128 + 2 * 8 * 1024 * 128);
  EXPECT_EQ(t.write_bytes(), 1024 * 128 + 1024 * 4);
  EXPECT_EQ(t.stages[0].tensor_ops, 4.0 * 1024 * 1024 * 64);
  EXPECT_EQ(t.stages[0].tiles, 8);
}

// Causal: query block i sees 128 (i + 1) keys, (1 + ... + 8) / 64 of the square.
TEST(Traffic, Fa2CausalSkipsBlocks) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = 1024;
  p.mask = causal();
  const Traffic t = fa2::kKernel.traffic(p, {128, 64});
  EXPECT_EQ(t.read_bytes(), 1024 * 128 + 2 * 36 * 128 * 128);
  EXPECT_EQ(t.stages[0].tensor_ops, 4.0 * 36 * 128 * 128 * 64);
}

// Query blocks that see no key (sq > sk, bottom-right) load nothing and still write O and LSE.
TEST(Traffic, Fa2EmptyRowsLoadNothing) {
  Problem p;
  p.seqlen_q = 256;
  p.seqlen_kv = 64;
  p.mask = causal();
  const Traffic t = fa2::kKernel.traffic(p, {128, 64});
  EXPECT_EQ(t.streams[0].read_bytes, 128 * 128);
  EXPECT_EQ(t.write_bytes(), 256 * 128 + 256 * 4);
}

// K and V traffic is N^2 d^2 / M up to a constant: half the SRAM, twice the bytes; twice the
// sequence, four times the bytes.
TEST(Traffic, Fa2FollowsTheIoLaw) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = 4096;
  const auto kv_bytes = [&](std::int64_t sram) {
    const Traffic t = fa2::kKernel.traffic(p, fa2::kKernel.tile(p, sram));
    return t.streams[1].read_bytes + t.streams[2].read_bytes;
  };
  const std::int64_t at_32k = kv_bytes(32 << 10U);
  EXPECT_EQ(kv_bytes(16 << 10U), 2 * at_32k);
  EXPECT_EQ(kv_bytes(8 << 10U), 4 * at_32k);
  p.seqlen_q = p.seqlen_kv = 8192;
  EXPECT_EQ(kv_bytes(32 << 10U), 4 * at_32k);
}

// Sixteen query blocks of 64 rows, each reads all keys once: K and V twice as often as with fa2's
// blocks. fp32 has the same tile and twice the bytes.
TEST(Traffic, SdpaFullByHand) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = 1024;
  const Tile tile = sdpa::kKernel.tile(p, 99 << 10U);
  EXPECT_EQ(tile.block_q, 64);
  const Traffic t = sdpa::kKernel.traffic(p, tile);
  EXPECT_EQ(t.read_bytes(), 1024 * 128 + 2 * 16 * 1024 * 128);
  EXPECT_EQ(t.write_bytes(), 1024 * 128 + 1024 * 4);
  EXPECT_EQ(t.stages[0].tensor_ops, 4.0 * 1024 * 1024 * 64);
  EXPECT_EQ(t.stages[0].path, TensorPath::mma_sync);
  p.dtype = DType::fp32;
  const Traffic fp32 = sdpa::kKernel.traffic(p, sdpa::kKernel.tile(p, 99 << 10U));
  EXPECT_EQ(fp32.read_bytes(), 2 * t.read_bytes());
  EXPECT_EQ(fp32.stages[0].path, TensorPath::none);
}

// Four key blocks of 256 rows: K and V are read once, Q four times; O in fp32 and two figures a row
// are put back after each sweep but the last, and fetched in each but the first.
TEST(Traffic, Fa1FullByHand) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = 1024;
  const Traffic t = fa1::kKernel.traffic(p, {32, 256});
  EXPECT_EQ(t.read_bytes(), (4 + 2) * 1024 * 128 + 3 * 1024 * (256 + 8));
  EXPECT_EQ(t.write_bytes(), 3 * 1024 * (256 + 8) + 1024 * 128 + 1024 * 4);
  EXPECT_EQ(t.stages[0].tensor_ops, 4.0 * 1024 * 1024 * 64);
  EXPECT_EQ(t.stages[0].tiles, 1);  // a head
}

// Causal: key block j is seen by the rows from 256 j on.
TEST(Traffic, Fa1CausalSkipsPairsOfBlocks) {
  Problem p;
  p.seqlen_q = p.seqlen_kv = 1024;
  p.mask = causal();
  const Traffic t = fa1::kKernel.traffic(p, {32, 256});
  EXPECT_EQ(t.streams[0].read_bytes, (1024 + 768 + 512 + 256) * 128);
  EXPECT_EQ(t.streams[3].read_bytes, (768 + 512 + 256) * 256);
  EXPECT_EQ(t.stages[0].tensor_ops, 4.0 * (1024 + 768 + 512 + 256) * 256 * 64);
}

// Query rows that see no key are written, and nothing is read for them; key blocks that no query
// sees are not read.
TEST(Traffic, Fa1EmptyRowsLoadNothing) {
  Problem p;
  p.seqlen_q = 256;
  p.seqlen_kv = 64;
  p.mask = causal();
  const Traffic t = fa1::kKernel.traffic(p, {32, 256});
  EXPECT_EQ(t.streams[0].read_bytes, 64 * 128);
  EXPECT_EQ(t.write_bytes(), 256 * 128 + 256 * 4);
  p.seqlen_q = 64;
  p.seqlen_kv = 1024;
  p.mask = causal(Align::top_left);
  EXPECT_EQ(fa1::kKernel.traffic(p, {32, 256}).streams[1].read_bytes, 256 * 128);
}

// Where a block has less shared memory, K and V come in smaller blocks and O is swept more often.
TEST(Tile, Fa1TakesTheLargestKeyBlockThatFits) {
  Problem p;
  p.headdim = p.headdim_v = 128;
  EXPECT_EQ(fa1::kKernel.tile(p, 227 << 10U).block_kv, 256);
  EXPECT_EQ(fa1::kKernel.tile(p, 99 << 10U).block_kv, 128);
  EXPECT_EQ(fa1::kKernel.tile(p, 48 << 10U).block_kv, 64);
}

// A row of more than 128 x 128 scores is read twice by the softmax.
TEST(Traffic, NaiveSoftmaxRowFitsOrNot) {
  Problem p;
  p.seqlen_q = 1;
  p.seqlen_kv = 16384;
  EXPECT_EQ(naive::kKernel.traffic(p, {128, 256}).streams[3].read_bytes, 1 * 2 * 16384);
  p.seqlen_kv = 16385;
  EXPECT_EQ(naive::kKernel.traffic(p, {128, 256}).streams[3].read_bytes, 2 * 2 * 16385);
}

TEST(Tile, TooLittleSramIsAnError) {
  Problem p;
  EXPECT_THROW(fa2::kKernel.tile(p, 100), std::exception);
  EXPECT_EQ(fa2::kKernel.tile(p, 3 * 64 * 2).block_q, 1);
}

TEST(TwoLevelMemory, CountsBytesAndRefusesWhatDoesNotFit) {
  TwoLevelMemory memory(64);
  const std::vector<float> source = {1, 2, 3, 4, 5, 6};
  {
    SramTile tile(memory, 4, 4, 2);
    tile.fill(9.0F);
    memory.load(tile, source.data(), 2, 2, 3, DType::bf16);
    EXPECT_EQ(memory.read_bytes(), 8);
    EXPECT_EQ(tile.at(1, 1), 5.0F);
    EXPECT_EQ(tile.at(2, 0), 0.0F);
    EXPECT_THROW(SramTile(memory, 4, 5, 2), std::exception);
    SramTile rest(memory, 4, 4, 2);
  }
  EXPECT_EQ(memory.sram_peak_bytes(), 64);
  const SramTile again(memory, 4, 8, 2);
  std::vector<float> target(3, 0.0F);
  SramTile values(memory, 1, 1, kInRegisters);
  values.at(0, 0) = 1.001F;
  memory.store(values, target.data() + 1, 1, 1, 1, DType::bf16);
  EXPECT_EQ(target, (std::vector<float>{0.0F, 1.0F, 0.0F}));
  EXPECT_EQ(memory.write_bytes(), 2);
}

}  // namespace
}  // namespace rooflash
