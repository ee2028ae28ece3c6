// Holds a stream until all work of a measurement is queued, so that the host's launch cost stays
// out of the times.
#pragma once

#include <cuda_runtime.h>

namespace rooflash {

class BlockStream {
 public:
  BlockStream();
  ~BlockStream();
  BlockStream(const BlockStream&) = delete;
  BlockStream& operator=(const BlockStream&) = delete;

  // Queues a kernel that spins until `release`, but `timeout_s` of GPU time at most: whatever the
  // work queued behind it does (a synchronisation inside a launch, say), the stream cannot hang.
  void block(cudaStream_t stream, double timeout_s = 1.0);
  void release();
  // After the stream is synchronised: the last block ended by its watchdog, so that the times
  // behind it may hold host delays.
  bool timed_out() const;

 private:
  struct Flags {  // host memory, mapped into the device
    unsigned released;
    unsigned timed_out;
  };
  volatile Flags* flags_ = nullptr;
  Flags* device_flags_ = nullptr;
};

}  // namespace rooflash
