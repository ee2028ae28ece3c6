// A stream that is held until all work is queued.
#include "measure/block_stream.hpp"

#include "harness.hpp"

namespace rooflash {
namespace {

struct Event {
  Event() { ROOFLASH_CUDA(cudaEventCreate(&event)); }
  ~Event() { (void)cudaEventDestroy(event); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  cudaEvent_t event = nullptr;
};

TEST(BlockStreams, HoldUntilReleased) {
  const Event behind;
  BlockStream block;
  block.block(gpu().stream, 30.0);
  ROOFLASH_CUDA(cudaEventRecord(behind.event, gpu().stream));
  EXPECT_EQ(cudaEventQuery(behind.event), cudaErrorNotReady);
  (void)cudaGetLastError();  // "not ready" counts as an error to the next launch check
  block.release();
  gpu().stream.synchronize();
  EXPECT_EQ(cudaEventQuery(behind.event), cudaSuccess);
  EXPECT_FALSE(block.timed_out());
}

// Ends only because the watchdog does: nothing releases the stream.
TEST(BlockStreams, AreReleasedByTheWatchdog) {
  BlockStream block;
  block.block(gpu().stream, 0.05);
  gpu().stream.synchronize();
  EXPECT_TRUE(block.timed_out());
}

TEST(BlockStreams, ServeAgainAfterTheWatchdog) {
  BlockStream block;
  block.block(gpu().stream, 0.05);
  gpu().stream.synchronize();
  block.block(gpu().stream, 30.0);
  block.release();
  gpu().stream.synchronize();
  EXPECT_FALSE(block.timed_out());
}

}  // namespace
}  // namespace rooflash
