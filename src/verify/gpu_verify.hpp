// Inputs, poison and checking on the GPU. Same rules, bitwise the same inputs as on the CPU.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "core/record.hpp"
#include "kernel.hpp"

namespace rooflash {

// Fills Q, K and V of `problem`, and the scales of e4m3 (shapes as in core/problem.hpp and
// kernel.hpp). For e4m3 it needs the memory of a GpuQuantizer meanwhile, and synchronises.
void fill_inputs(const Problem& problem, std::uint64_t seed, const Tensors& tensors,
                 CUstream_st* stream);

// Fills O and LSE with NaN, so that an element nobody writes is seen.
void poison_outputs(const Problem& problem, const Tensors& tensors, CUstream_st* stream);

// Compares O and LSE with the fp64 reference: every row where that is cheap, else sampled rows of
// sampled heads; and counts non-finite values in all of O. Synchronises the stream.
VerifyResult verify_on_gpu(const Problem& problem, std::uint64_t seed, const Tensors& tensors,
                           CUstream_st* stream);

}  // namespace rooflash
