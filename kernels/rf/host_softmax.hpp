// The lazily referenced softmax on the CPU. Past a row's first and masked blocks weights are taken
// against the reference that these left, until a sum outgrows its room.
#pragma once

#include <cmath>
#include <functional>
#include <vector>

#include "common/hopper/host_forward.hpp"

namespace rooflash::rf {

class LazySoftmax : public hopper::Softmax {
 public:
  // bf16 has the exponents of fp32, and weights begin in the middle of them. fp16 holds weights up
  // to 2^16, and has no room for a bias.
  explicit LazySoftmax(DType dtype)
      : bias_(dtype == DType::bf16 ? 60.0F : 0.0F),
        largest_sum_(dtype == DType::bf16 ? 0x1p60F : 0x1p15F) {}

  float bias_log2() const override { return bias_; }
  // A whole number: factors are exact powers of two.
  float reference(float largest) const override { return std::ceil(largest); }

  void fast(const hopper::Block& block, const std::function<void()>& again) const override {
    std::vector<hopper::RowState::LaneSums> sums(block.rows.size());
    bool within = true;
    for (std::size_t r = 0; r < block.rows.size(); ++r) {
      block.exponentiate(r, block.rows[r].max + bias_, sums[r]);
      // Not above it: NaN as well.
      for (const float sum : sums[r]) within = within && sum <= largest_sum_;
    }
    if (!within) {
      again();
      return exact(block);
    }
    for (std::size_t r = 0; r < block.rows.size(); ++r) {
      hopper::RowState& row = block.rows[r];
      row.factor = 1;
      for (std::size_t lane = 0; lane < sums[r].size(); ++lane) row.sums[lane] += sums[r][lane];
    }
  }

 private:
  float bias_;
  float largest_sum_;
};

}  // namespace rooflash::rf
