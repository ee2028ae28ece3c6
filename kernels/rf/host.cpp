// The lazily referenced softmax on the CPU, on fa3's pipeline: past a row's first and masked blocks
// weights are taken against the reference that these left, until a sum outgrows its room.
#include "host.hpp"

#include <cmath>

#include "config.hpp"
#include "variants.hpp"

namespace rooflash::rf {
namespace {

// Of a score: scaling, sum, half a conversion.
constexpr double kFp32OpsLazy = 2.5;
constexpr double kFp32OpsExact = 3;  // half a maximum more

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

std::string limits(const Problem& p) {
  return hopper::limits("rf", p, choose(p).config);
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  return hopper::choose_tile(p, choose(p).config, sram_bytes);
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  forward(p, t, tile, memory);
}

Traffic traffic(const Problem& p, Tile tile) {
  const hopper::Config& config = choose(p).config;
  return hopper::traffic(p, tile, config, is_lazy(config) ? kFp32OpsLazy : kFp32OpsExact);
}

std::string choice(const Problem& p) {
  return hopper::describe(choose(p));
}

}  // namespace

hopper::ForwardCounts forward(const Problem& p, const HostTensors& t, Tile tile,
                              TwoLevelMemory& memory) {
  const hopper::Config& config = choose(p).config;
  if (!is_lazy(config)) return hopper::forward(p, t, tile, config, hopper::Softmax(), memory);
  return hopper::forward(p, t, tile, config, LazySoftmax(p.dtype), memory);
}

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "rf",
    .summary = "fa3 with a lazily referenced softmax: maxima in the first and masked blocks alone",
    .source = "rooflash's own step beyond FlashAttention-3",
    .variants = kVariants,
    .limits = limits,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
    .choice = choice,
};

}  // namespace rooflash::rf
