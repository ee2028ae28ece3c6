// The lazily referenced softmax on the CPU. Past a tile's first and masked blocks a row's weights
// are taken against the reference that these left, until they outgrow their room.
#pragma once

#include <algorithm>
#include <functional>

#include "common/hopper/host_forward.hpp"
#include "room.hpp"

namespace rooflash::rf {

class LazySoftmax : public hopper::Softmax {
 public:
  explicit LazySoftmax(DType dtype)
      : largest_(dtype == DType::fp16 ? kLargestFp16 : kLargestBf16) {}

  void fast(const hopper::Block& block, std::size_t row,
            const std::function<void()>& again) const override {
    hopper::RowState& state = block.rows[row];
    hopper::RowState::LaneSums sums{};
    // A row with no key yet has reference -inf and gets infinite weights: one to do again.
    block.exponentiate(row, state.max, sums);
    // Not above it: NaN as well.
    if (!std::all_of(sums.begin(), sums.end(), [&](float sum) { return sum <= largest_; })) {
      again();
      return exact(block, row);
    }
    state.factor = 1;
    for (std::size_t lane = 0; lane < sums.size(); ++lane) state.sums[lane] += sums[lane];
  }

 private:
  float largest_;
};

}  // namespace rooflash::rf
