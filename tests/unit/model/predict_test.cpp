#include "model/predict.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "model/l2_model.hpp"
#include "model/roofline.hpp"

namespace rooflash {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

// One launch of `tiles` tiles.
Stage stage(double tiles) {
  Stage result;
  result.name = "stage";
  result.tiles = tiles;
  return result;
}

// A run of one launch that moves `bytes` once, and does nothing else.
Traffic copy(std::int64_t bytes, double tiles) {
  Traffic t;
  t.streams = {{"q", bytes, bytes, 0, 1}};
  t.stages = {stage(tiles)};
  t.stages[0].sm_l2_bytes = static_cast<double>(bytes);
  return t;
}

// A fused forward kernel: `tiles_per_head` query tiles each sweep their head's K and V.
Traffic fused(std::int64_t heads, std::int64_t tiles_per_head, std::int64_t q_bytes,
              std::int64_t kv_bytes) {
  Traffic t;
  t.streams = {{"q", heads * q_bytes, heads * q_bytes, 0, 1},
               {"kv", heads * kv_bytes, heads * tiles_per_head * kv_bytes, 0, tiles_per_head},
               {"o", heads * q_bytes, 0, heads * q_bytes, 1}};
  t.stages = {stage(static_cast<double>(heads * tiles_per_head))};
  return t;
}

TEST(L2Model, WhatFitsCostsItsFootprintOnce) {
  const Traffic t = fused(16, 64, 4 * kMiB, 8 * kMiB);  // 132 tiles: three heads, 24 MiB, live
  // All but O's part, a quarter, of the last 60 MiB that came in.
  EXPECT_DOUBLE_EQ(hbm_bytes(t, {60 * kMiB, 132}), (16.0 * (4 + 8 + 4) - 15) * kMiB);
  // In two partitions Q takes one and a half times its size, K and V twice theirs.
  EXPECT_DOUBLE_EQ(hbm_bytes(t, {60 * kMiB, 132, 2}), (16.0 * 16 - 60 * 4.0 / (6 + 16 + 4)) * kMiB);
}

TEST(L2Model, ASmallOutputStaysInL2) {
  const Traffic t = fused(2, 8, 2 * kMiB, kMiB);  // 4 MiB written
  EXPECT_DOUBLE_EQ(hbm_bytes(t, {60 * kMiB, 132}), 2.0 * (2 + 1) * kMiB);
}

TEST(L2Model, WhatIsWrittenTwiceIsLeftInL2Once) {
  Traffic t = copy(kMiB, 8);
  t.streams.push_back({"scores", kMiB, 2 * kMiB, 2 * kMiB, 1});
  EXPECT_DOUBLE_EQ(hbm_bytes(t, {60 * kMiB, 132}), 1.0 * kMiB);
}

TEST(L2Model, LessCacheNeverCostsFewerBytesAndStaysWithinTheTraffic) {
  const Traffic t = fused(64, 64, 4 * kMiB, 8 * kMiB);
  const double unique = 64.0 * 16 * kMiB;
  double previous = 0;
  for (std::int64_t capacity = 64 * kMiB; capacity >= 1; capacity /= 2) {
    const double bytes = hbm_bytes(t, {capacity, 16});
    EXPECT_GE(bytes, previous) << capacity;
    EXPECT_GE(bytes, unique - static_cast<double>(capacity));
    EXPECT_LE(bytes, static_cast<double>(t.read_bytes() + t.write_bytes()));
    previous = bytes;
  }
  EXPECT_GT(previous, 2 * unique);
}

TEST(L2Model, TilesSideBySideShareAPass) {
  // One head, no cache to speak of: 64 tiles in step make one pass, 16 at a time make four.
  const Traffic t = fused(1, 64, kMiB, 512 * kMiB);
  EXPECT_NEAR(hbm_bytes(t, {1, 64}), (1 + 512 + 1) * kMiB, 1);
  EXPECT_NEAR(hbm_bytes(t, {1, 16}), (1 + 4 * 512 + 1) * kMiB, 16);
}

TEST(L2Model, AnIntermediateLivesWholeBetweenLaunches) {
  Traffic t;
  t.streams = {{"scores", 64 * kMiB, 64 * kMiB, 64 * kMiB, 1}};
  t.stages = {stage(4096), stage(4096), stage(4096)};
  EXPECT_NEAR(hbm_bytes(t, {6400 * kMiB, 132}), 0, 0.03 * kMiB);  // never leaves L2
  EXPECT_NEAR(hbm_bytes(t, {1, 132}), 128.0 * kMiB, 4);           // written, then read
  double previous = 0;
  for (const std::int64_t capacity : {256, 128, 64, 32, 16}) {
    const double bytes = hbm_bytes(t, {capacity * kMiB, 132});
    EXPECT_GT(bytes, previous) << capacity;
    previous = bytes;
  }
  t.stages = {stage(4096)};  // an accumulator of the running tiles only: 132 of 4096 shares
  EXPECT_DOUBLE_EQ(hbm_bytes(t, {30 * kMiB, 132}), 34.0 * kMiB);  // the last 30 are left in L2
}

// Scores of 49 MB on an H200, counted: 0.62 of the reads and nearly all writes met HBM.
TEST(L2Model, AnIntermediateAboutAsLargeAsL2IsPartlyThere) {
  constexpr std::int64_t kScores = 49'152'000;
  Traffic t;
  t.streams = {{"scores", kScores, kScores, kScores, 1}, {"weights", 0, kScores, kScores, 1}};
  t.stages = {stage(600), stage(38400), stage(180)};
  const double bytes = hbm_bytes(t, {60 * kMiB, 132, 2});
  EXPECT_GT(bytes, 0.5 * 4 * kScores);
  EXPECT_LT(bytes, 0.9 * 4 * kScores);
}

// Swept over and over in the same order: what will be wanted next is what has gone.
TEST(L2Model, SweepsLargerThanL2FindNothingOfTheLastOne) {
  const auto bytes = [](std::int64_t size) {
    Traffic t;
    t.streams = {{"accumulator", size, 10 * size, 10 * size, 1}};
    t.stages = {stage(132)};
    return hbm_bytes(t, {60 * kMiB, 132, 1}) / static_cast<double>(size);
  };
  EXPECT_NEAR(bytes(100 * kMiB), 20 - 0.6, 1e-9);  // the last 60 MiB are left in L2
  EXPECT_LE(bytes(50 * kMiB), 1);
  EXPECT_GT(bytes(75 * kMiB), 5);
  EXPECT_LT(bytes(75 * kMiB), 15);
}

class Predict : public ::testing::Test {
 protected:
  const GpuSpec& h200_ = *find_gpu("h200");
  Problem problem_;  // bf16
};

TEST_F(Predict, MemoryBoundRunTakesTheCopyRate) {
  const Prediction p = predict(problem_, copy(4300000000, 132), h200_);
  EXPECT_EQ(p.bound, "hbm");
  EXPECT_NEAR(p.time_us, 1000 + h200_.launch_us, 1e-6);
  EXPECT_EQ(p.sm_l2_bytes, 4300000000.0);
  EXPECT_EQ(p.hbm_bytes, 4300000000.0);  // nothing is written
}

// Counted on an H200: rows of 208 bytes, fetched by lanes of 16, cost 1.5 times their size.
TEST_F(Predict, RowsThatStartInsideASectorTouchMore) {
  const auto sm_l2 = [&](std::int64_t row, std::int64_t piece) {
    Traffic t = copy(208'000'000, 132);
    t.streams[0].row_bytes = row;
    t.streams[0].piece_bytes = piece;
    return predict(problem_, t, h200_).sm_l2_bytes / 208e6;
  };
  EXPECT_DOUBLE_EQ(sm_l2(0, 0), 1);
  EXPECT_DOUBLE_EQ(sm_l2(256, 32), 1);
  EXPECT_DOUBLE_EQ(sm_l2(256, 128), 1);
  EXPECT_DOUBLE_EQ(sm_l2(208, 32), (7 + 13) / 2.0 * 32 / 208);  // two lanes a sector, or one
  EXPECT_DOUBLE_EQ(sm_l2(208, 208), 7 * 32.0 / 208);            // in one request
  EXPECT_DOUBLE_EQ(sm_l2(208, 128), (4 + 3 + 5 + 3) / 2.0 * 32 / 208);  // 128 bytes, then 80
  EXPECT_GT(sm_l2(1002, 128), sm_l2(1008, 128));                        // nearly no row is aligned
}

// One tile on an SM waits in its own gaps; the largest tile is the least a launch takes.
TEST_F(Predict, TilesAloneAndUnevenTilesTakeLonger) {
  const auto time = [&](double tiles, double largest) {
    Traffic t = copy(1, tiles);
    t.stages[0].tensor_ops = 1e9 * tiles;
    t.stages[0].path = TensorPath::mma_sync;
    t.stages[0].largest_tile = largest;
    return predict(problem_, t, h200_).time_us - h200_.launch_us;
  };
  const double alone = time(132, 1);
  EXPECT_NEAR(time(264, 1), 4.0 / 3 * alone, 1e-6);
  EXPECT_NEAR(time(396, 1), 7.0 / 3 * alone, 1e-6);
  EXPECT_NEAR(time(132, 2), 2 * alone, 1e-6);
  EXPECT_NEAR(time(2640, 2), time(2640, 1), 1e-6);  // hidden among the others
}

// A part of the shorter time of memory and SMs is not hidden by the longer.
TEST_F(Predict, MemoryAndComputeOverlapInPart) {
  const auto time = [&](std::int64_t bytes, double ops) {
    Traffic t = copy(bytes, 1320);
    t.stages[0].tensor_ops = ops;
    t.stages[0].path = TensorPath::wgmma;
    return predict(problem_, t, h200_).time_us - h200_.launch_us;
  };
  const double memory = time(4'000'000'000, 0);
  const double compute = time(1, 2e11);
  ASSERT_LT(compute, memory);
  EXPECT_GT(time(4'000'000'000, 2e11), memory + 0.1 * compute);
  EXPECT_LT(time(4'000'000'000, 2e11), memory + 0.5 * compute);
}

TEST_F(Predict, StagesFollowEachOther) {
  Traffic t = copy(4300000000, 132);
  t.stages.push_back(t.stages[0]);
  t.stages[0].sm_l2_bytes = 0.25 * 4.3e9;
  t.stages[1].sm_l2_bytes = 0.75 * 4.3e9;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 1000 + 2 * h200_.launch_us, 1e-6);
}

TEST_F(Predict, TensorBoundRunTakesTheRateOfItsInstructions) {
  Traffic t;
  t.stages = {stage(132 * 100)};
  t.stages[0].tensor_ops = 793e12;
  t.stages[0].path = TensorPath::wgmma;
  const Prediction fast = predict(problem_, t, h200_);
  EXPECT_EQ(fast.bound, "tensor");
  EXPECT_NEAR(fast.time_us, 1e6, 10);
  t.stages[0].path = TensorPath::mma_sync;
  const double mma_sync = 989.4 * h200_.mma_sync_share * load_clock_mhz(h200_) / 1980;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 793 / mma_sync * 1e6, 10);
  t.stages[0].path = TensorPath::none;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 793 / 66.9 * 1e6, 100);
}

TEST_F(Predict, UnitsOverlapOnlyBehindAsynchronousProducts) {
  Traffic t;
  t.stages = {stage(132 * 100)};
  Stage& s = t.stages[0];
  const double clocks_per_us = 132 * load_clock_mhz(h200_);
  s.exp_ops = 16 * clocks_per_us * 2000;  // 2 ms of the exponential units
  // and half a millisecond of the fp32 units: 66.9 TFLOPS are two operations an instruction
  s.fp32_ops = 66.9e6 / 2 * load_clock_mhz(h200_) / 1980 * 500;
  s.tensor_ops = 793e9;  // and one of the tensor cores
  s.path = TensorPath::wgmma;
  const Prediction overlapped = predict(problem_, t, h200_);
  EXPECT_EQ(overlapped.bound, "exp");
  EXPECT_NEAR(overlapped.time_us, 2500 + h200_.launch_us, 1e-6);
  s.path = TensorPath::mma_sync;
  const double tensor_us = 0.793e6 / (989.4 * h200_.mma_sync_share * load_clock_mhz(h200_) / 1980);
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, (2500 + tensor_us) * 2.0 / 3.0 + h200_.launch_us,
              1e-6);
  // Never less than the busiest unit alone.
  s.tensor_ops = 1;
  s.fp32_ops = 0;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 2000 + h200_.launch_us, 1e-3);
}

TEST_F(Predict, APartlyFilledWaveCostsAWholeOne) {
  Traffic t;
  t.stages = {stage(132)};
  t.stages[0].tensor_ops = 793e9;
  t.stages[0].path = TensorPath::wgmma;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 1000 + h200_.launch_us, 1e-6);
  t.stages[0].tiles = 133;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 1000 * 264 / 133.0 + h200_.launch_us, 1e-6);
}

TEST_F(Predict, EachWaveWaitsForItsRoundTrips) {
  Traffic t;
  t.stages = {stage(132 * 2 * 10)};
  t.stages[0].tiles_per_sm = 2;
  t.stages[0].latencies = 3;
  const Prediction ten = predict(problem_, t, h200_);
  EXPECT_EQ(ten.bound, "latency");
  EXPECT_NEAR(ten.time_us, 30 * h200_.memory_latency_us + h200_.launch_us, 1e-6);
  t.stages[0].tiles += 1;
  EXPECT_NEAR(predict(problem_, t, h200_).time_us, 33 * h200_.memory_latency_us + h200_.launch_us,
              1e-6);
}

TEST_F(Predict, TinyRunsAreBoundByTheirLaunches) {
  Traffic t = copy(1024, 1);
  t.stages.resize(3, t.stages[0]);
  const Prediction p = predict(problem_, t, h200_);
  EXPECT_EQ(p.bound, "launch");
  EXPECT_GE(p.time_us, 3 * h200_.launch_us);
}

TEST_F(Predict, ReReadsThatStayInL2AreBoundByIt) {
  Traffic t;
  t.streams = {{"k", kMiB, 1000000 * kMiB, 0, 1000000}};
  t.stages = {stage(132000)};
  t.stages[0].sm_l2_bytes = static_cast<double>(1000000 * kMiB);
  EXPECT_EQ(predict(problem_, t, h200_).bound, "l2");
}

TEST_F(Predict, ACardWithoutTheTypeIsAnErrorNotAGuess) {
  Traffic t;
  t.stages = {stage(1)};
  t.stages[0].tensor_ops = 1;
  t.stages[0].path = TensorPath::mma_sync;
  EXPECT_THROW(predict(problem_, t, *find_gpu("v100")), Error);
}

TEST(Roofline, IsTheLowerOfTheTwoRoofs) {
  EXPECT_DOUBLE_EQ(roof_tflops(100, 4000, 800), 400);
  EXPECT_DOUBLE_EQ(roof_tflops(200, 4000, 800), 800);
  EXPECT_DOUBLE_EQ(roof_tflops(5000, 4000, 800), 800);
  EXPECT_DOUBLE_EQ(roof_pct(200, 100, 4000, 800), 50);
  EXPECT_DOUBLE_EQ(roof_pct(200, 1e6, 4000, 800), 25);
}

}  // namespace
}  // namespace rooflash
