// The lazily referenced softmax on the CPU. Past a tile's first and masked blocks a row's weights
// are taken against the reference that these left, until they outgrow their room; from then on its
// warp goes fa3's way to the end of the tile.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>

#include "common/hopper/host_forward.hpp"
#include "room.hpp"

namespace rooflash::rf {

class LazySoftmax : public hopper::Softmax {
 public:
  explicit LazySoftmax(DType dtype)
      : largest_(dtype == DType::fp16 ? kLargestFp16 : kLargestBf16) {}

  void fast(const hopper::Block& block,
            const std::function<void(std::size_t)>& again) const override {
    const bool wary = std::any_of(block.rows.begin(), block.rows.end(),
                                  [](const hopper::RowState& state) { return state.outgrown; });
    for (std::size_t row = 0; row < block.rows.size(); ++row) {
      if (wary) {
        exact(block, row);
      } else {
        lazy(block, row, again);
      }
    }
  }

 private:
  void lazy(const hopper::Block& block, std::size_t row,
            const std::function<void(std::size_t)>& again) const {
    hopper::RowState& state = block.rows[row];
    hopper::RowState::LaneSums sums{};
    // A row with no key yet has reference -inf and gets infinite weights: one to do again.
    block.exponentiate(row, state.max, sums);
    // Not above it: NaN as well.
    if (!std::all_of(sums.begin(), sums.end(), [&](float sum) { return sum <= largest_; })) {
      again(row);
      // Not where there was no key before; and what is infinite or NaN says nothing of the scores
      // to come, and stays in its row.
      state.outgrown = std::isfinite(state.max) && std::isfinite(block.largest_score(row));
      return exact(block, row);
    }
    state.factor = 1;
    for (std::size_t lane = 0; lane < sums.size(); ++lane) state.sums[lane] += sums[lane];
  }

  float largest_;
};

}  // namespace rooflash::rf
