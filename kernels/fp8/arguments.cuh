// What an fp8 kernel is given, and its launch.
#pragma once

#include "common/hopper/arguments.cuh"
#include "fp8/config.hpp"

namespace rooflash::fp8 {

struct Arguments : hopper::Arguments {
  bool fp16_output;  // else bf16
  // How far a row's largest weight may outgrow its place before its maximum moves, in log2:
  // kLagLog2, or 0, with which a lazy softmax keeps to the maximum from the first block on.
  float lag;
};

// The launch of `kernel`, a __global__ function of an Arguments that runs `forward` with `config`,
// on e4m3 tensors, whose scales are positive, with O in bf16 or fp16. v_mean is 16-byte aligned.
// Throws as hopper::prepare does.
Prepared prepare(const void* kernel, const Config& config, const Problem& p, const Tensors& t,
                 const DeviceLimits& device);

}  // namespace rooflash::fp8
