// The time model: what a run should take on a GPU, from its closed-form traffic and the card's
// roofs.
#pragma once

#include <string_view>

#include "core/problem.hpp"
#include "kernel.hpp"
#include "model/gpu_spec.hpp"

namespace rooflash {

struct Prediction {
  double sm_l2_bytes = 0;
  double hbm_bytes = 0;
  double time_us = 0;
  std::string_view bound;  // hbm | l2 | tensor | exp | fp32 | smem | narrow loads | latency |
                           // launch: the longest term
};

// Time = the sum over the stages of a launch and the longest of
//   HBM       the stage's share of the HBM bytes at the copy rate,
//   L2        its bytes between SMs and L2 at the L2 rate,
//   compute   tensor, exponential, fp32 and shared-memory work of the SM with the most tiles, and
//   for
//             each wave of tiles the memory round trips that nothing hides.
// Rates are the card's calibrated ones where it has them, at the clock it runs at under load.
// Throws Error where the card has no tensor cores for the problem's dtype but the traffic asks for
// them.
Prediction predict(const Problem& problem, const Traffic& traffic, const GpuSpec& spec);

}  // namespace rooflash
