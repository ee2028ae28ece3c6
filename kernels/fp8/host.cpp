#include "host.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "common/host_math.hpp"
#include "common/mask.hpp"
#include "core/fp8.hpp"
#include "tensor_core.hpp"
#include "variants.hpp"

namespace rooflash::fp8 {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
// A row's largest weight is 2^kPlaceLog2 when its maximum moves, and may outgrow it by kLagLog2
// before it moves again, with max=true not at all.
constexpr int kPlaceLog2 = 3;
constexpr float kLargestWeight = 448;
constexpr std::int64_t kWarpRows = 16;
// Of a score: scaling, sum, a conversion that takes two slots. Beside products they and the
// exponentials take longer, by about a third of the products' own time, here in operations for each
// channel. Set on h200-fp8.json.
constexpr double kFp32Ops = 3.5;
constexpr double kBesideProducts = 0.022;
// Of a value of O that is promoted: twice taken apart, added, taken ahead, rounded, taken off.
constexpr double kPromotionOps = 5.5;
// Of memory, that a tile's beginning and end take as long as: first weights, division and store,
// which all warpgroups are at together.
constexpr double kLatencies = 3;

// Rows of `most` from `first` on that exist.
std::int64_t existing(std::int64_t first, std::int64_t most, std::int64_t seqlen) {
  return std::clamp<std::int64_t>(seqlen - first, 0, most);
}

KeyBlocks blocks_of(const Problem& p, std::int64_t first_row, std::int64_t rows,
                    std::int64_t block_kv) {
  if (first_row >= p.seqlen_q) return {};
  return key_blocks(band_of(p), first_row, std::min(rows, p.seqlen_q - first_row), p.seqlen_kv,
                    block_kv);
}

// Scales of Q that rows from `first_row` on have among them: a tile made smaller may begin and end
// inside a block of rows that share one.
std::int64_t q_scales_of(std::int64_t first_row, std::int64_t rows) {
  return (first_row + rows - 1) / kScaleRowsQ - first_row / kScaleRowsQ + 1;
}

// The Q tile and one block of K and of V: further stages only hide latency. S, P and O are in
// registers.
std::int64_t needed_bytes(const Config& config, Tile tile) {
  return (tile.block_q + 2 * tile.block_kv) * config.headdim;
}

// What a kernel keeps of a row. Four lanes share it: lane q of them has columns 8 i + 2 q and the
// next of its scores, and a sum of its own weights.
using LaneSums = std::array<float, 4>;
struct Row {
  float max = kMinusInfinity;  // of the scores with their block's v_log2, or a reference in its
                               // place, that weights are taken against, in log2
  LaneSums sums{};
  std::vector<float> o;         // of the tensor cores, not yet divided
  std::vector<float> promoted;  // sums in bf16
  int summed = 0;               // blocks in both

  // What is subtracted from its scores. One with no key yet keeps -inf; 0 in its place avoids
  // inf - inf.
  float shift() const { return max == kMinusInfinity ? 0.0F : max - kPlaceLog2; }
  // Of what was summed up before.
  void multiply(float factor) {
    for (float& sum : sums) sum *= factor;
    for (float& value : o) value *= factor;
    for (float& value : promoted) value *= factor;
  }
};

// And of its rows together.
struct Warp {
  std::int64_t place;  // of its first row in the query tile
  std::vector<Row> rows;
  bool wary = false;  // keeps to the true maximum for the rest of the tile
};

// A row's scores of a key block and the weights made of them.
struct RowBlock {
  std::vector<float> scores;  // in log2, with the block's v_log2
  std::vector<float> weights{};
  LaneSums sums{};  // of the weights, not rounded

  bool outgrows(float most) const {  // also where one is NaN
    return !std::all_of(sums.begin(), sums.end(), [&](float sum) { return sum <= most; });
  }
};

class Forward {
 public:
  Forward(const Problem& problem, const HostTensors& tensors, Tile tile, const Config& config,
          TwoLevelMemory& memory)
      : p_(problem),
        t_(tensors),
        tile_(tile),
        config_(config),
        memory_(memory),
        modes_(fp8_modes(problem)),
        q_(memory, tile.block_q, config.headdim, 1),
        k_(memory, tile.block_kv, config.headdim, 1),
        v_(memory, tile.block_kv, config.headdim, 1),
        scale_(memory, 1, 1, kInRegisters),
        o_(memory, 1, config.headdim, kInRegisters),
        lse_(memory, 1, 1, kInRegisters) {}

  void run() {
    for (std::int64_t batch = 0; batch < p_.batch; ++batch) {
      for (std::int64_t head = 0; head < p_.heads_q; ++head) {
        for (std::int64_t row = 0; row < p_.seqlen_q; row += tile_.block_q) {
          query_tile(batch, head, row);
        }
      }
    }
  }

 private:
  void query_tile(std::int64_t batch, std::int64_t head, std::int64_t first_row) {
    const std::int64_t kv_head = head / (p_.heads_q / p_.heads_kv);
    const std::int64_t rows = existing(first_row, tile_.block_q, p_.seqlen_q);
    memory_.load(q_, t_.q + row_offset(batch, first_row, head, p_.seqlen_q, p_.heads_q, p_.headdim),
                 rows, p_.headdim, p_.heads_q * p_.headdim, p_.dtype);
    start_warps(rows);
    q_scales_.clear();
    first_q_scale_ = first_row / kScaleRowsQ;
    for (std::int64_t i = 0; i < q_scales_of(first_row, rows); ++i) {
      q_scales_.push_back(load_scale(
          t_.scales.q + (batch * p_.heads_q + head) * q_scale_blocks(p_) + first_q_scale_ + i));
    }
    const KeyBlocks blocks = blocks_of(p_, first_row, tile_.block_q, tile_.block_kv);
    for (std::int64_t block = blocks.end; block-- > blocks.begin;) {
      load_block(batch, kv_head, block);
      for (Warp& warp : warps_) {
        const std::int64_t place = warp.place / kWarpgroupRows * kWarpgroupRows;
        const KeyBlocks own =
            blocks_of(p_, first_row + place, std::min<std::int64_t>(kWarpgroupRows, rows - place),
                      tile_.block_kv);
        if (block < own.begin || block >= own.end) continue;
        // Blocks that all rows see, after one that all rows saw.
        const bool lazily =
            block >= own.whole_begin && block + 1 < std::min(own.whole_end, own.end);
        step(warp, first_row + warp.place, block, lazily);
      }
    }
    const float v_scale = load_scale(t_.scales.v + batch * p_.heads_kv + kv_head);
    load_mean(batch * p_.heads_kv + kv_head);
    for (Warp& warp : warps_) {
      for (std::size_t r = 0; r < warp.rows.size(); ++r) {
        end(warp.rows[r], batch, head, first_row + warp.place + static_cast<std::int64_t>(r),
            v_scale);
      }
    }
  }

  void start_warps(std::int64_t rows) {
    const auto width = static_cast<std::size_t>(config_.headdim);
    const Row row{.o = std::vector<float>(width), .promoted = std::vector<float>(width)};
    warps_.clear();
    for (std::int64_t place = 0; place < rows; place += kWarpRows) {
      const std::int64_t count = std::min(kWarpRows, rows - place);
      warps_.push_back(
          {place, std::vector<Row>(static_cast<std::size_t>(count), row), modes_.true_maximum});
    }
  }

  float load_scale(const float* source) {
    memory_.load(scale_, source, 1, 1, 1, DType::fp32);
    return scale_.at(0, 0);
  }

  // V's mean; zeros where V is not smoothed.
  void load_mean(std::int64_t kv_head) {
    mean_.assign(static_cast<std::size_t>(p_.headdim_v), 0.0F);
    if (t_.scales.v_mean == nullptr) return;
    memory_.load(o_, t_.scales.v_mean + kv_head * p_.headdim_v, 1, p_.headdim_v, p_.headdim_v,
                 DType::fp32);
    std::copy_n(o_.row(0), mean_.size(), mean_.begin());
  }

  void load_block(std::int64_t batch, std::int64_t kv_head, std::int64_t block) {
    const std::int64_t key = block * tile_.block_kv;
    const std::int64_t keys = existing(key, tile_.block_kv, p_.seqlen_kv);
    memory_.load(k_, t_.k + row_offset(batch, key, kv_head, p_.seqlen_kv, p_.heads_kv, p_.headdim),
                 keys, p_.headdim, p_.heads_kv * p_.headdim, p_.dtype);
    memory_.load(v_,
                 t_.v + row_offset(batch, key, kv_head, p_.seqlen_kv, p_.heads_kv, p_.headdim_v),
                 keys, p_.headdim_v, p_.heads_kv * p_.headdim_v, p_.dtype);
    const std::int64_t at =
        (batch * p_.heads_kv + kv_head) * kv_scale_blocks(p_) + key / kScaleRowsKv;
    k_scale_ = load_scale(t_.scales.k + at);
    v_log2_ = load_scale(t_.scales.v_log2 + at);
    // V with keys along the rows' ends, as the tensor cores take it.
    v_transposed_.resize(static_cast<std::size_t>(v_.rows() * v_.cols()));
    for (std::int64_t j = 0; j < v_.rows(); ++j) {
      for (std::int64_t c = 0; c < v_.cols(); ++c) {
        v_transposed_[static_cast<std::size_t>(c * v_.rows() + j)] = v_.at(j, c);
      }
    }
  }

  // A key block of a warp: its weights, and what they add to O. `lazily`: against the references
  // that there are; no maximum is looked for until weights outgrow e4m3.
  void step(Warp& warp, std::int64_t first_query, std::int64_t block, bool lazily) {
    std::vector<RowBlock> row_blocks;
    for (std::size_t r = 0; r < warp.rows.size(); ++r) {
      const auto row = static_cast<std::int64_t>(r);
      row_blocks.push_back({.scores = scores(warp.place + row, first_query + row, block)});
    }
    const bool follows = !lazily || warp.wary;
    weigh(warp, row_blocks, follows);
    const auto any_outgrows = [&](float most) {
      return std::any_of(row_blocks.begin(), row_blocks.end(),
                         [&](const RowBlock& one) { return one.outgrows(most); });
    };
    if (!follows && any_outgrows(kLargestWeight)) {
      warp.wary = any_outgrows(std::numeric_limits<float>::max());
      if (warp.wary) {
        weigh(warp, row_blocks, true);
      } else {
        for (std::size_t r = 0; r < warp.rows.size(); ++r) bring_down(warp.rows[r], row_blocks[r]);
      }
    }
    for (std::size_t r = 0; r < warp.rows.size(); ++r) sum_up(warp.rows[r], row_blocks[r]);
  }

  std::vector<float> scores(std::int64_t row, std::int64_t query, std::int64_t block) const {
    const float scale_log2 =
        static_cast<float>(softmax_scale(p_) * std::numbers::log2e) *
        q_scales_[static_cast<std::size_t>(query / kScaleRowsQ - first_q_scale_)] * k_scale_;
    std::vector<float> result(static_cast<std::size_t>(tile_.block_kv), kMinusInfinity);
    const KeyRange keys = visible_keys(p_, query);
    for (std::int64_t j = 0; j < tile_.block_kv; ++j) {
      const std::int64_t key = block * tile_.block_kv + j;
      if (key < keys.begin || key >= keys.end) continue;
      float sum = 0;
      for (std::int64_t c = 0; c < config_.headdim; c += kProducts) {
        sum = tensor_core_sum(sum, q_.row(row) + c, k_.row(j) + c, kProducts);
      }
      result[static_cast<std::size_t>(j)] = sum * scale_log2 + v_log2_;
    }
    return result;
  }

  void weigh(Warp& warp, std::vector<RowBlock>& row_blocks, bool follows) const {
    for (std::size_t r = 0; r < warp.rows.size(); ++r) {
      Row& row = warp.rows[r];
      RowBlock& one = row_blocks[r];
      if (follows) follow(row, one.scores);
      one.weights.clear();
      one.sums = {};
      for (std::size_t j = 0; j < one.scores.size(); ++j) {
        one.weights.push_back(std::exp2(one.scores[j] - row.shift()));
        one.sums[j / 2 % 4] += one.weights.back();
      }
    }
  }

  // Moves the maximum where a block's scores have outgrown it.
  void follow(Row& row, const std::vector<float>& scores) const {
    const float largest = std::accumulate(scores.begin(), scores.end(), kMinusInfinity,
                                          [](float a, float b) { return std::max(a, b); });
    const float lag = modes_.true_maximum ? 0.0F : kLagLog2;
    if (!(largest > row.max + lag)) return;  // also the first score of a row, after -inf
    row.multiply(std::exp2(row.max - largest));
    row.max = largest;
  }

  // Weights that have left their place go back to it, by a power of two, with what was summed up
  // before.
  static void bring_down(Row& row, RowBlock& one) {
    const float most = *std::max_element(one.weights.begin(), one.weights.end());
    const int down = most > 0 ? std::max(std::ilogb(most) - kPlaceLog2, 0) : 0;
    const float factor = std::ldexp(1.0F, -down);
    row.max += static_cast<float>(down);
    row.multiply(factor);
    for (float& sum : one.sums) sum *= factor;
    for (float& weight : one.weights) weight *= factor;
  }

  void sum_up(Row& row, RowBlock& one) {
    // The sums are those of the true weights; the tensor cores' take V as it is stored.
    const float undo = std::exp2(-v_log2_);
    for (std::size_t lane = 0; lane < one.sums.size(); ++lane) {
      row.sums[lane] += one.sums[lane] * undo;
    }
    for (float& weight : one.weights) weight = round_to(DType::e4m3, weight);
    for (std::size_t c = 0; c < row.o.size(); ++c) {
      const float* values = v_transposed_.data() + c * static_cast<std::size_t>(tile_.block_kv);
      for (std::int64_t j = 0; j < tile_.block_kv; j += kProducts) {
        row.o[c] = tensor_core_sum(row.o[c], one.weights.data() + j, values + j,
                                   std::min(kProducts, tile_.block_kv - j));
      }
    }
    const int ahead = config_.promote_blocks / 2;
    if (config_.promote_blocks > 0 && ++row.summed % config_.promote_blocks == ahead) {
      promote(row, ahead);
    }
  }

  // What has been summed up, and what half a promotion's blocks will add at that rate. The rest,
  // and what rounding leaves, stays in O.
  static void promote(Row& row, int ahead) {
    const float factor = 1.0F + static_cast<float>(ahead) / static_cast<float>(row.summed);
    for (std::size_t c = 0; c < row.o.size(); ++c) {
      const float sum = row.o[c] + row.promoted[c];
      row.promoted[c] = round_to(DType::bf16, sum * factor);
      row.o[c] = sum - row.promoted[c];
    }
  }

  void end(Row& row, std::int64_t batch, std::int64_t head, std::int64_t query, float v_scale) {
    const float sum = (row.sums[0] + row.sums[1]) + (row.sums[2] + row.sums[3]);
    const float scale = sum == 0.0F ? 0.0F : v_scale / sum;
    std::transform(row.o.begin(), row.o.end(), row.promoted.begin(), o_.row(0),
                   [&](float o, float promoted) { return (o + promoted) * scale; });
    for (std::size_t c = 0; sum != 0.0F && c < mean_.size(); ++c) o_.row(0)[c] += mean_[c];
    // Without keys the sum is 0 and its logarithm -inf.
    lse_.at(0, 0) = (row.max - kPlaceLog2 + std::log2(sum)) * std::numbers::ln2_v<float>;
    memory_.store(o_, t_.o + row_offset(batch, query, head, p_.seqlen_q, p_.heads_q, p_.headdim_v),
                  1, p_.headdim_v, p_.heads_q * p_.headdim_v, output_dtype(p_));
    memory_.store(lse_, t_.lse + (batch * p_.heads_q + head) * p_.seqlen_q + query, 1, 1, 1,
                  DType::fp32);
  }

  const Problem& p_;
  const HostTensors& t_;
  Tile tile_;
  const Config& config_;
  TwoLevelMemory& memory_;
  Fp8Modes modes_;
  SramTile q_, k_, v_, scale_, o_, lse_;
  std::vector<float> q_scales_;  // that the tile's rows have
  std::int64_t first_q_scale_ = 0;
  float k_scale_ = 1;  // of the block
  float v_log2_ = 0;
  std::vector<float> v_transposed_;
  std::vector<float> mean_;  // of V, a value a channel
  std::vector<Warp> warps_;
};

}  // namespace

void forward(const Problem& p, const HostTensors& t, Tile tile, const Config& config,
             TwoLevelMemory& memory) {
  Forward(p, t, tile, config, memory).run();
}

Tile choose_tile(const Problem& /*p*/, const Config& config, std::int64_t sram_bytes) {
  return fit_tile({config.block_m(), config.block_n}, sram_bytes,
                  [&](Tile tile) { return needed_bytes(config, tile); });
}

Traffic traffic(const Problem& p, Tile tile, const Config& config) {
  const std::int64_t heads = p.batch * p.heads_q;
  const std::int64_t query_tiles = ceil_div(p.seqlen_q, tile.block_q);
  std::int64_t key_rows = 0;    // loaded, per head
  std::int64_t scales = 0;      // loaded, per head
  std::int64_t steps = 0;       // of warpgroups, per head
  std::int64_t most_steps = 0;  // of one query tile
  for (std::int64_t row = 0; row < p.seqlen_q; row += tile.block_q) {
    const std::int64_t rows = existing(row, tile.block_q, p.seqlen_q);
    const KeyBlocks blocks = blocks_of(p, row, tile.block_q, tile.block_kv);
    scales += q_scales_of(row, rows) + 2 * (blocks.end - blocks.begin) + 1;
    key_rows += std::min(blocks.end * tile.block_kv, p.seqlen_kv) - blocks.begin * tile.block_kv;
    std::int64_t steps_here = 0;
    for (std::int64_t place = 0; place < rows; place += kWarpgroupRows) {
      const KeyBlocks own = blocks_of(
          p, row + place, std::min<std::int64_t>(kWarpgroupRows, rows - place), tile.block_kv);
      steps_here += own.end - own.begin;
    }
    steps += steps_here;
    most_steps = std::max(most_steps, steps_here);
  }
  const std::int64_t sharing = query_tiles * (p.heads_q / p.heads_kv);
  const std::int64_t scale_bytes =
      4 * (heads * q_scale_blocks(p) + p.batch * p.heads_kv * (2 * kv_scale_blocks(p) + 1));
  constexpr std::int64_t kPiece = 128;  // a row of a box of the copy engine
  Traffic result;
  result.streams = {
      // All rows, those that see no key too.
      read_stream("q", q_elements(p), q_elements(p), 1, p.headdim, kPiece),
      read_stream("k", k_elements(p), heads * key_rows * p.headdim, sharing, p.headdim, kPiece),
      read_stream("v", v_elements(p), heads * key_rows * p.headdim_v, sharing, p.headdim_v, kPiece),
      read_stream("scales", scale_bytes, heads * scales * 4, sharing),
      read_stream("v_mean", v_mean_elements(p) * 4,
                  v_mean_elements(p) > 0 ? heads * query_tiles * p.headdim_v * 4 : 0, sharing),
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p)),
                   p.headdim_v * size_bytes(output_dtype(p)), kPiece),
      write_stream("lse", lse_elements(p) * 4),
  };
  const double scores = static_cast<double>(heads * steps) *
                        static_cast<double>(std::int64_t{kWarpgroupRows} * tile.block_kv);
  Stage stage;
  stage.name = "forward";
  stage.sm_l2_bytes = static_cast<double>(result.read_bytes() + result.write_bytes());
  stage.tensor_ops = scores * 4.0 * config.headdim;
  stage.exp_ops = scores;
  stage.fp32_ops = scores * (kFp32Ops + kBesideProducts * config.headdim);
  if (config.promote_blocks > 0) {
    stage.fp32_ops +=
        scores * kPromotionOps * config.headdim / (config.promote_blocks * config.block_n);
  }
  stage.tiles = static_cast<double>(heads * query_tiles);
  if (steps > 0) {
    stage.largest_tile = static_cast<double>(most_steps * query_tiles) / static_cast<double>(steps);
  }
  stage.latencies = kLatencies;
  stage.path = TensorPath::wgmma;
  result.stages = {stage};
  return result;
}

namespace {

std::string limits(const Problem& p) {
  if (p.headdim_v != p.headdim) return "fp8 takes V of the head dim of Q and K alone";
  if (output_dtype(p) == DType::e4m3) return "fp8 gives O in bf16 or fp16";
  constexpr int kRowsLog2 = 29;  // the kernel adds rows and ends of bands in 32 bits
  return tiled_limits("fp8", p, p.batch * p.heads_q * ceil_div(p.seqlen_q, choose(p).block_m()),
                      "query tiles", kRowsLog2);
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  return fp8::choose_tile(p, choose(p), sram_bytes);
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  forward(p, t, tile, choose(p), memory);
}

Traffic traffic(const Problem& p, Tile tile) {
  return fp8::traffic(p, tile, choose(p));
}

// Of both ways to sum up.
std::string choice(const Problem& p) {
  std::string text;
  Problem mode = p;
  for (const std::string accum : {"fast", "exact"}) {
    mode.options["accum"] = accum;
    const auto& tile = kTiles[hopper::choose(kTiles, mode)];
    if (!text.empty()) text += "; ";
    text += "accum=" + accum + ": " + std::to_string(tile.config.block_m()) + " queries x " +
            std::to_string(tile.config.block_n) + " keys, " + std::string(tile.why);
  }
  return text;
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "fp8",
    .summary =
        "FlashAttention-3's FP8: e4m3 inputs, sums promoted (exact) or left to tensor cores (fast)",
    .source = "arXiv 2407.08608, section 3.3",
    .variants = kVariants,
    .options = kFp8Options,
    .limits = limits,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
    .choice = choice,
};

}  // namespace rooflash::fp8
