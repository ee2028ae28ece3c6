// Loops that keep one unit of the GPU busy and nothing else: what the unit can do at most.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace rooflash {

// A loop on the tensor cores, on random inputs that stay in the SM.
struct TensorLoop {
  std::string type;           // bf16, fp16, tf32, e4m3
  bool warpgroup = false;     // wgmma, else mma.sync
  double ops = 0;             // of one run, a multiply-add as two
  std::function<void()> run;  // queues it
};

// Those that this build and a card of compute capability `sm` have, the fastest of a type first.
std::vector<TensorLoop> tensor_loops(int sm, int sm_count, cudaStream_t stream);

// A loop on another unit; `work` of one run in the unit's measure.
struct UnitLoop {
  double work = 0;
  std::function<void()> run;
};

UnitLoop exp_loop(int sm_count, cudaStream_t stream);   // work: exponentials
UnitLoop fp32_loop(int sm_count, cudaStream_t stream);  // work: operations, a multiply-add as two
UnitLoop smem_loop(int sm_count, cudaStream_t stream);  // work: bytes read
// Work: bytes read. Each block reads the whole of a buffer of a quarter of L2.
UnitLoop l2_read_loop(std::int64_t l2_bytes, int sm_count, cudaStream_t stream);

}  // namespace rooflash
