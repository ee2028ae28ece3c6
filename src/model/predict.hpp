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
  std::string_view bound;  // hbm | l2 | tensor | exp | launch: the longest term
};

// Time = the longest of the HBM, L2 and compute terms, plus the launches. L2 and compute terms are
// stretched by the last, partly filled wave of tiles. Throws Error where the card has no tensor
// cores for the problem's dtype but the traffic asks for them.
Prediction predict(const Problem& problem, const Traffic& traffic, const GpuSpec& spec);

}  // namespace rooflash
