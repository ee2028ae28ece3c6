// The lazily referenced softmax on the CPU. Past a row's first and masked blocks weights are taken
// against the reference that these left, until a sum outgrows its room.
#pragma once

#include <functional>
#include <vector>

#include "common/hopper/host_forward.hpp"

namespace rooflash::rf {

class LazySoftmax : public hopper::Softmax {
 public:
  // fp16 holds weights up to 2^16. bf16 has the exponents of fp32: sums of four lanes over 2^23
  // blocks stay below 2^127. There is nothing to win by a bias that would begin further down: its
  // rounding would be seen in LSE.
  explicit LazySoftmax(DType dtype) : largest_sum_(dtype == DType::bf16 ? 0x1p96F : 0x1p15F) {}

  void fast(const hopper::Block& block, const std::function<void()>& again) const override {
    std::vector<hopper::RowState::LaneSums> sums(block.rows.size());
    bool within = true;
    for (std::size_t r = 0; r < block.rows.size(); ++r) {
      block.exponentiate(r, block.rows[r].max, sums[r]);
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
  float largest_sum_;
};

}  // namespace rooflash::rf
