// Host side of the Hopper families: what their GPU pipeline does, on the CPU over a two-level
// memory, and its closed form. A family adds its tiles and its softmax. CUDA-free.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "common/hopper/tiles.hpp"
#include "common/two_level_memory.hpp"
#include "kernel.hpp"

namespace rooflash::hopper {

// What a warp keeps of one of its rows. Four lanes share a row: lane q of them has its columns
// 8 i + 2 q and 8 i + 2 q + 1, and a sum of its own weights.
struct RowState {
  using LaneSums = std::array<float, 4>;

  float max = -std::numeric_limits<float>::infinity();  // that weights are taken against, in log2
  LaneSums sums{};
  float factor = 1;       // that the last block asks O of the blocks before to be multiplied by
  bool outgrown = false;  // a reference, in this tile (rf)

  // Moves the maximum where `largest` has outgrown it by more than 2^8: O is hardly ever rescaled.
  void move_to(float largest);
};

// A key block of a warp: scores, which a softmax makes weights of, row by row.
struct Block {
  SramTile& s;
  std::span<RowState> rows;
  float scale_log2;

  float largest_score(std::size_t row) const;  // scaled
  // Scores to 2^(score - shift), added up in `sums`.
  void exponentiate(std::size_t row, float shift, RowState::LaneSums& sums) const;
};

// FlashAttention-3's softmax, against the true running maximum; others build on it.
class Softmax {
 public:
  virtual ~Softmax() = default;
  // A row's weights after its true maximum: in a tile's first block, and in masked ones.
  void exact(const Block& block, std::size_t row) const;
  // The weights of a block that all rows see. `again` makes scores of a row's once more.
  virtual void fast(const Block& block, const std::function<void(std::size_t)>& /*again*/) const {
    for (std::size_t row = 0; row < block.rows.size(); ++row) exact(block, row);
  }
};

// Key blocks of warps, by the way they went.
struct ForwardCounts {
  std::int64_t exact = 0;
  std::int64_t fast = 0;
  std::int64_t replayed_rows = 0;  // of the fast ones
};

std::string limits(std::string_view family, const Problem& p, const Config& config);
// Of the parts' O and LSE, where keys are split.
std::int64_t workspace_bytes(const Problem& p, const Config& config);
Tile choose_tile(const Problem& p, const Config& config, std::int64_t sram_bytes);
// `splits`: parts that keys are cut into; 0: as many as the GPU takes, 1 without `config.split`.
ForwardCounts forward(const Problem& p, const HostTensors& t, Tile tile, const Config& config,
                      const Softmax& softmax, TwoLevelMemory& memory, std::int64_t splits = 0);
// `fp32_ops` that the softmax takes for a score.
Traffic traffic(const Problem& p, Tile tile, const Config& config, double fp32_ops,
                std::int64_t splits = 0);
// "192 queries x 64 keys, 4 stages; why".
std::string describe(const Problem& p, const CompiledTile& tile);

}  // namespace rooflash::hopper
