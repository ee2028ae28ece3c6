// What an fp8 kernel is given, and its launch.
#pragma once

#include "common/hopper/arguments.cuh"
#include "fp8/config.hpp"

namespace rooflash::fp8 {

// On the device, in fp32: Q = q * its elements and so on, V = v * 2^v_log2 * its elements. All
// positive; v_log2 whole numbers from -96 to 0.
struct Scales {
  const float* q;       // [batch, heads_q, ceil(seqlen_q / kWarpgroupRows)]
  const float* k;       // [batch, heads_kv, ceil(seqlen_kv / kScaleKeys)]
  const float* v;       // [batch, heads_kv]
  const float* v_log2;  // as k
  const float* v_mean;  // [batch, heads_kv, headdim], added to O of rows that see a key; or nullptr
};

struct Arguments : hopper::Arguments {
  Scales scales;
};

// The launch of `kernel`, a __global__ function of an Arguments that runs `forward` with `config`,
// on e4m3 tensors with O in bf16. Throws as hopper::prepare does.
Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const Scales& scales, const DeviceLimits& device);

}  // namespace rooflash::fp8
