// What an fp8 kernel is given, and its launch.
#pragma once

#include "common/hopper/arguments.cuh"
#include "fp8/config.hpp"

namespace rooflash::fp8 {

struct Arguments : hopper::Arguments {
  const float* v_mean;  // [batch, heads_kv, headdim], added to O of rows that see a key; or nullptr
};

// The launch of `kernel`, a __global__ function of an Arguments that runs `forward` with `config`,
// on e4m3 tensors, whose scales are positive, with O in bf16. `v_mean` is on the device, 16-byte
// aligned. Throws as hopper::prepare does.
Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device, const float* v_mean = nullptr);

}  // namespace rooflash::fp8
