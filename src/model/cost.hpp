// The one count of pairs, FLOPs and compulsory bytes. Every kernel, table and roofline uses it.
#pragma once

#include <cstdint>

#include "core/problem.hpp"
#include "core/record.hpp"

namespace rooflash {

// Unmasked (query, key) pairs of one head: the sum over query rows of the keys each one sees.
// Closed form; exact for every mask and every valid problem (see `invalid_reason`).
std::int64_t unmasked_pairs(const Problem& problem);

// Model FLOPs under kFlopConvention: 2 b hq pairs (d + dv) forward, 2 b hq pairs (3 d + 2 dv)
// backward. GQA does not change them.
double flops(const Problem& problem);

// Least HBM traffic: each input read once, each output written once; LSE is not counted. Backward
// reads Q, K, V, O, dO and writes dQ, dK, dV.
std::int64_t compulsory_bytes(const Problem& problem);

// All figures but the predicted ones.
ModelFigures model_figures(const Problem& problem);

}  // namespace rooflash
