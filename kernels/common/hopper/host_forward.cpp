#include "common/hopper/host_forward.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "common/hopper/schedule.hpp"
#include "common/host_math.hpp"
#include "common/mask.hpp"

namespace rooflash::hopper {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kWarpRows = 16;

std::size_t lane_of(std::size_t column) {
  return column / 2 % 4;
}

std::int64_t parts_of(const Problem& p, const Config& config, std::int64_t splits) {
  return splits == 0 ? splits_for(p, config) : splits;
}

// The Q tile and one stage of K and of V: the others only hide latency. S, P and O are in
// registers.
std::int64_t needed_bytes(const Problem& p, const Config& config, Tile tile) {
  return (tile.block_q + 2 * tile.block_kv * config.stage_blocks) * config.headdim *
         size_bytes(p.dtype);
}

// As on an H200; the order changes nothing of what a tile reads and writes.
Schedule schedule_of(const Problem& p, Tile tile, const Config& config) {
  return schedule_for(p, tile.block_q, kSmCount, packed_heads(p, config));
}

// Of a query tile's keys, as `plan` notes them: the stages of a part, and the blocks of a warpgroup
// among them.
KeyBlocks stages_of(const Problem& p, std::int64_t first_row, Tile tile, const Config& config,
                    std::int64_t part, std::int64_t splits) {
  const KeyBlocks all = blocks_of_rows(p, packed_heads(p, config), first_row, tile.block_q,
                                       tile.block_kv * config.stage_blocks);
  return {part_begin(all.begin, all.end, part, splits),
          part_begin(all.begin, all.end, part + 1, splits), all.whole_begin, all.whole_end};
}
KeyBlocks own_blocks(const Problem& p, std::int64_t first_row, std::int64_t rows, Tile tile,
                     const Config& config, const KeyBlocks& stages) {
  KeyBlocks own = blocks_of_rows(p, packed_heads(p, config), first_row, rows, tile.block_kv);
  own.begin = std::max(own.begin, stages.begin * config.stage_blocks);
  own.end = std::max(std::min(own.end, stages.end * config.stage_blocks), own.begin);
  return own;
}

// Rows of `most` from `first` on that exist.
std::int64_t existing(std::int64_t first, std::int64_t most, std::int64_t seqlen) {
  return std::clamp<std::int64_t>(seqlen - first, 0, most);
}

// Of a query tile's first row and place of a warp in it: the first row of the warp's warpgroup.
std::int64_t warpgroup_row(std::int64_t first_row, std::int64_t place) {
  return first_row + place / kWarpgroupRows * kWarpgroupRows;
}

struct Warp {
  Warp(TwoLevelMemory& memory, std::int64_t place_in_tile, Tile tile, const Config& config,
       std::int64_t bytes)
      : place(place_in_tile),
        q(memory, std::min(kWarpRows, tile.block_q - place), config.headdim, bytes),
        s(memory, q.rows(), tile.block_kv, kInRegisters),
        o(memory, q.rows(), config.headdim, kInRegisters),
        lse(memory, q.rows(), 1, kInRegisters) {}

  std::int64_t place;  // of its first row in the query tile
  SramTile q;
  SramTile s;  // then the weights
  SramTile o;  // not yet divided by the row sums
  SramTile lse;
  std::vector<RowState> rows;
  KeyBlocks own{};  // of its warpgroup

  bool needs_mask(std::int64_t block) const {
    return block < own.whole_begin || block >= own.whole_end;
  }
  // Whole stages that need no mask, past the first block.
  bool goes_fast(std::int64_t block, std::int64_t stage_blocks) const {
    const std::int64_t first = block / stage_blocks * stage_blocks;
    return first >= own.whole_begin && first + stage_blocks <= std::min(own.whole_end, own.end - 1);
  }
};

void apply_mask(const Problem& p, Warp& warp, std::int64_t packed, std::int64_t first_row,
                std::int64_t first_key) {
  for (std::size_t r = 0; r < warp.rows.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    const KeyRange keys = visible_keys(p, (first_row + row) / packed);
    for (std::int64_t c = 0; c < warp.s.cols(); ++c) {
      const std::int64_t key = first_key + c;
      if (key < keys.begin || key >= keys.end) warp.s.at(row, c) = kMinusInfinity;
    }
  }
}

// A row's scores, in place of what was there.
void score(Warp& warp, std::int64_t row, const SramTile& k) {
  const float* q = warp.q.row(row);
  for (std::int64_t key = 0; key < k.rows(); ++key) {
    warp.s.at(row, key) = std::inner_product(q, q + k.cols(), k.row(key), 0.0F);
  }
}

// Divides by the row sums, and LSE.
void normalise(Warp& warp) {
  for (std::size_t r = 0; r < warp.rows.size(); ++r) {
    const auto row = static_cast<std::int64_t>(r);
    const RowState& state = warp.rows[r];
    const float sum = (state.sums[0] + state.sums[1]) + (state.sums[2] + state.sums[3]);
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
    for (std::int64_t c = 0; c < warp.o.cols(); ++c) warp.o.at(row, c) *= inverse;
    // Without keys the sum is 0 and its logarithm -inf.
    warp.lse.at(row, 0) = (state.max + std::log2(sum)) * std::numbers::ln2_v<float>;
  }
}

class Forward {
 public:
  Forward(const Problem& problem, const HostTensors& tensors, Tile tile, const Config& config,
          const Softmax& softmax, TwoLevelMemory& memory, std::int64_t splits)
      : p_(problem),
        t_(tensors),
        tile_(tile),
        config_(config),
        softmax_(softmax),
        memory_(memory),
        splits_(splits),
        packed_(packed_heads(problem, config)),
        row_(memory, 1, config.headdim, kInRegisters),
        lse_(memory, 1, 1, kInRegisters) {
    const std::int64_t bytes = size_bytes(p_.dtype);
    for (std::int64_t place = 0; place < tile_.block_q; place += kWarpRows) {
      warps_.emplace_back(memory_, place, tile_, config_, bytes);
    }
    for (int i = 0; i < config_.stage_blocks; ++i) {
      k_.emplace_back(memory_, tile_.block_kv, config_.headdim, bytes);
      v_.emplace_back(memory_, tile_.block_kv, config_.headdim, bytes);
    }
  }

  ForwardCounts run() {
    if (config_.split) {
      o_parts_ = memory_.allocate_slow(splits_ * o_elements(p_), DType::fp32);
      lse_parts_ = memory_.allocate_slow(splits_ * lse_elements(p_), DType::fp32);
    }
    const Schedule schedule = schedule_of(p_, tile_, config_);
    const std::int64_t heads = p_.heads_q / packed_;
    for (part_ = 0; part_ < splits_; ++part_) {
      for (int i = 0; i < schedule.tiles(); ++i) {
        const Work work = schedule.work(i);
        query_tile(work.head / heads, work.head % heads, work.query_block * tile_.block_q);
      }
    }
    if (config_.split) {
      for (std::int64_t row = 0; row < lse_elements(p_); ++row) combine(row);
      memory_.release_slow(splits_ * o_elements(p_), DType::fp32);
      memory_.release_slow(splits_ * lse_elements(p_), DType::fp32);
    }
    return counts_;
  }

 private:
  // `head` of the tile: the number of a group of packed_ heads.
  void query_tile(std::int64_t batch, std::int64_t head, std::int64_t first_row) {
    const std::int64_t head_kv = head * packed_ / (p_.heads_q / p_.heads_kv);
    const KeyBlocks stages = stages_of(p_, first_row, tile_, config_, part_, splits_);
    for (Warp& warp : warps_) begin(warp, batch, head, first_row, stages);
    for (std::int64_t stage = stages.end; stage-- > stages.begin;) {
      load_stage(stage, batch, head_kv);
      for (int sub = config_.stage_blocks; sub-- > 0;) {
        const std::int64_t block = stage * config_.stage_blocks + sub;
        for (Warp& warp : warps_) {
          if (warp.own.begin <= block && block < warp.own.end) {
            step(warp, first_row + warp.place, block, k_[static_cast<std::size_t>(sub)],
                 v_[static_cast<std::size_t>(sub)]);
          }
        }
      }
    }
    for (Warp& warp : warps_) end(warp, batch, head, first_row + warp.place);
  }

  void begin(Warp& warp, std::int64_t batch, std::int64_t head, std::int64_t first_row,
             const KeyBlocks& stages) {
    const std::int64_t row = first_row + warp.place;
    const std::int64_t rows = existing(row, warp.q.rows(), p_.seqlen_q * packed_);
    warp.q.fill(0.0F);
    for (std::int64_t r = 0; r < rows; ++r) {
      memory_.load(row_,
                   t_.q + row_offset(batch, (row + r) / packed_, head_of(head, row + r),
                                     p_.seqlen_q, p_.heads_q, p_.headdim),
                   1, p_.headdim, p_.headdim, p_.dtype);
      std::copy_n(row_.row(0), row_.cols(), warp.q.row(r));
    }
    warp.o.fill(0.0F);
    warp.rows.assign(static_cast<std::size_t>(rows), RowState{});
    const std::int64_t group_row = warpgroup_row(first_row, warp.place);
    const std::int64_t group_rows =
        std::min<std::int64_t>(kWarpgroupRows, first_row + tile_.block_q - group_row);
    warp.own = own_blocks(p_, group_row, group_rows, tile_, config_, stages);
  }

  void load_stage(std::int64_t stage, std::int64_t batch, std::int64_t head_kv) {
    for (int sub = 0; sub < config_.stage_blocks; ++sub) {
      const std::int64_t key = (stage * config_.stage_blocks + sub) * tile_.block_kv;
      const std::int64_t keys = existing(key, tile_.block_kv, p_.seqlen_kv);
      const auto load = [&](SramTile& target, const float* source, std::int64_t width) {
        memory_.load(target,
                     source + row_offset(batch, key, head_kv, p_.seqlen_kv, p_.heads_kv, width),
                     keys, width, p_.heads_kv * width, p_.dtype);
      };
      load(k_[static_cast<std::size_t>(sub)], t_.k, p_.headdim);
      load(v_[static_cast<std::size_t>(sub)], t_.v, p_.headdim_v);
    }
  }

  void step(Warp& warp, std::int64_t first_row, std::int64_t block, const SramTile& k,
            const SramTile& v) {
    const bool fast = warp.goes_fast(block, config_.stage_blocks);
    ++(fast ? counts_.fast : counts_.exact);
    const Block of_warp{warp.s, warp.rows,
                        static_cast<float>(softmax_scale(p_) * std::numbers::log2e)};
    for (std::int64_t row = 0; row < warp.s.rows(); ++row) score(warp, row, k);
    if (warp.needs_mask(block)) apply_mask(p_, warp, packed_, first_row, block * tile_.block_kv);
    if (fast) {
      softmax_.fast(of_warp, [&](std::size_t row) {
        score(warp, static_cast<std::int64_t>(row), k);
        ++counts_.replayed_rows;
      });
    } else {
      for (std::size_t r = 0; r < warp.rows.size(); ++r) softmax_.exact(of_warp, r);
    }
    for (std::size_t r = 0; r < warp.rows.size(); ++r) {
      const auto row = static_cast<std::int64_t>(r);
      float* o = warp.o.row(row);
      std::for_each(o, o + warp.o.cols(), [&](float& value) { value *= warp.rows[r].factor; });
      float* s = warp.s.row(row);
      std::transform(s, s + warp.s.cols(), s, [&](float w) { return round_to(p_.dtype, w); });
    }
    add_product(warp.o, warp.s, v);
  }

  void end(Warp& warp, std::int64_t batch, std::int64_t head, std::int64_t first_row) {
    normalise(warp);
    for (std::size_t r = 0; r < warp.rows.size(); ++r) {
      const auto place = static_cast<std::int64_t>(r);
      const std::int64_t query = (first_row + place) / packed_;
      const std::int64_t head_q = head_of(head, first_row + place);
      const std::int64_t row = (batch * p_.heads_q + head_q) * p_.seqlen_q + query;
      std::copy_n(warp.o.row(place), row_.cols(), row_.row(0));
      lse_.at(0, 0) = warp.lse.at(place, 0);
      if (config_.split) {
        const std::int64_t at = part_ * lse_elements(p_) + row;
        store_row(o_parts_.data() + at * p_.headdim_v, DType::fp32, lse_parts_.data() + at);
      } else {
        store_row(t_.o + row_offset(batch, query, head_q, p_.seqlen_q, p_.heads_q, p_.headdim_v),
                  output_dtype(p_), t_.lse + row);
      }
    }
  }

  // Of the tile's row.
  std::int64_t head_of(std::int64_t head, std::int64_t row) const {
    return head * packed_ + row % packed_;
  }

  void store_row(float* o, DType dtype, float* lse) {
    memory_.store(row_, o, 1, p_.headdim_v, p_.headdim_v, dtype);
    memory_.store(lse_, lse, 1, 1, 1, DType::fp32);
  }

  // A row of all heads, from its parts. A warp of the kernel has every kCombineWarps-th of them.
  void combine(std::int64_t row) {
    const std::int64_t rows = lse_elements(p_);
    SramTile weights(memory_, splits_, 1, kInRegisters);
    memory_.load(weights, lse_parts_.data() + row, splits_, 1, rows, DType::fp32);
    float largest = kMinusInfinity;
    for (std::int64_t part = 0; part < splits_; ++part) {
      largest = std::fmax(largest, weights.at(part, 0));
    }
    // A row with no key in any part: 0 avoids inf - inf.
    const float shift = largest == kMinusInfinity ? 0.0F : largest;
    float sum = 0;
    for (std::int64_t part = 0; part < splits_; ++part) {
      weights.at(part, 0) = std::exp(weights.at(part, 0) - shift);
      sum += weights.at(part, 0);
    }
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
    SramTile own(memory_, 1, p_.headdim_v, kInRegisters);
    SramTile sums(memory_, kCombineWarps, p_.headdim_v, kInRegisters);
    for (std::int64_t part = 0; part < splits_; ++part) {
      memory_.load(own, o_parts_.data() + (part * rows + row) * p_.headdim_v, 1, p_.headdim_v,
                   p_.headdim_v, DType::fp32);
      for (std::int64_t c = 0; c < p_.headdim_v; ++c) {
        sums.at(part % kCombineWarps, c) += weights.at(part, 0) * inverse * own.at(0, c);
      }
    }
    for (int warp = 1; warp < kCombineWarps; ++warp) {
      for (std::int64_t c = 0; c < p_.headdim_v; ++c) sums.at(0, c) += sums.at(warp, c);
    }
    std::copy_n(sums.row(0), p_.headdim_v, row_.row(0));
    lse_.at(0, 0) = largest + std::log(sum);
    const std::int64_t head = row / p_.seqlen_q;
    store_row(t_.o + row_offset(head / p_.heads_q, row % p_.seqlen_q, head % p_.heads_q,
                                p_.seqlen_q, p_.heads_q, p_.headdim_v),
              output_dtype(p_), t_.lse + row);
  }

  const Problem& p_;
  const HostTensors& t_;
  Tile tile_;
  const Config& config_;
  const Softmax& softmax_;
  TwoLevelMemory& memory_;
  std::int64_t splits_;
  std::int64_t part_ = 0;
  std::int64_t packed_;  // rows of a query
  SramTile row_;         // of Q or O, on its way
  SramTile lse_;
  std::vector<float> o_parts_;    // [splits, batch x heads x queries, headdim_v]
  std::vector<float> lse_parts_;  // [splits, batch x heads x queries]
  std::vector<Warp> warps_;
  std::vector<SramTile> k_;  // of a stage
  std::vector<SramTile> v_;
  ForwardCounts counts_;
};

}  // namespace

void RowState::move_to(float largest) {
  factor = 1;
  if (largest > max + kLagLog2) {  // also the first score of a row, after -inf
    factor = std::exp2(max - largest);
    max = largest;
    for (float& sum : sums) sum *= factor;
  }
}

float Block::largest_score(std::size_t row) const {
  const float* scores = s.row(static_cast<std::int64_t>(row));
  float largest = kMinusInfinity;
  for (std::int64_t c = 0; c < s.cols(); ++c) largest = std::max(largest, scores[c]);
  return largest * scale_log2;
}

void Block::exponentiate(std::size_t row, float shift, RowState::LaneSums& sums) const {
  float* scores = s.row(static_cast<std::int64_t>(row));
  for (std::size_t c = 0; c < static_cast<std::size_t>(s.cols()); ++c) {
    scores[c] = std::exp2(scores[c] * scale_log2 - shift);
    sums[lane_of(c)] += scores[c];
  }
}

void Softmax::exact(const Block& block, std::size_t row) const {
  RowState& state = block.rows[row];
  state.move_to(block.largest_score(row));
  // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
  block.exponentiate(row, state.max == kMinusInfinity ? 0.0F : state.max, state.sums);
}

std::string limits(std::string_view family, const Problem& p, const Config& config) {
  constexpr int kRowsLog2 = 29;  // the kernel adds rows and ends of bands in 32 bits
  return tiled_limits(family, p, p.batch * p.heads_q * ceil_div(p.seqlen_q, config.block_m()),
                      "query tiles", kRowsLog2);
}

std::int64_t workspace_bytes(const Problem& p, const Config& config) {
  return config.split ? parts_bytes(p, splits_for(p, config)) : 0;
}

Tile choose_tile(const Problem& p, const Config& config, std::int64_t sram_bytes) {
  return fit_tile({config.block_m(), config.block_n}, sram_bytes,
                  [&](Tile tile) { return needed_bytes(p, config, tile); });
}

ForwardCounts forward(const Problem& p, const HostTensors& t, Tile tile, const Config& config,
                      const Softmax& softmax, TwoLevelMemory& memory, std::int64_t splits) {
  return Forward(p, t, tile, config, softmax, memory, parts_of(p, config, splits)).run();
}

Traffic traffic(const Problem& p, Tile tile, const Config& config, double fp32_ops,
                std::int64_t asked_splits) {
  const std::int64_t splits = parts_of(p, config, asked_splits);
  const std::int64_t packed = packed_heads(p, config);
  const std::int64_t heads = p.batch * p.heads_q / packed;
  const std::int64_t rows = p.seqlen_q * packed;
  const std::int64_t bytes = size_bytes(p.dtype);
  const std::int64_t stage_keys = tile.block_kv * config.stage_blocks;
  const std::int64_t group_rows = std::min<std::int64_t>(kWarpgroupRows, tile.block_q);
  const std::int64_t query_tiles = ceil_div(rows, tile.block_q);
  std::int64_t key_rows = 0;    // loaded, per head
  std::int64_t steps = 0;       // of warpgroups, per head
  std::int64_t most_steps = 0;  // of one query tile, of a part of its keys
  for (std::int64_t row = 0; row < rows; row += tile.block_q) {
    for (std::int64_t part = 0; part < splits; ++part) {
      const KeyBlocks stages = stages_of(p, row, tile, config, part, splits);
      if (stages.begin == stages.end) continue;
      key_rows += std::min(stages.end * stage_keys, p.seqlen_kv) - stages.begin * stage_keys;
      std::int64_t steps_here = 0;
      for (std::int64_t place = 0; place < tile.block_q; place += group_rows) {
        const KeyBlocks own = own_blocks(p, row + place, std::min(group_rows, tile.block_q - place),
                                         tile, config, stages);
        steps_here += own.end - own.begin;
      }
      steps += steps_here;
      most_steps = std::max(most_steps, steps_here);
    }
  }
  const std::int64_t sharing = query_tiles * (p.heads_q / p.heads_kv / packed);
  const std::int64_t row = p.headdim * bytes;
  const std::int64_t row_v = p.headdim_v * bytes;
  constexpr std::int64_t kPiece = 128;  // a row of a box of the copy engine
  Traffic result;
  result.streams = {
      // All rows, those that see no key too.
      read_stream("q", q_elements(p) * bytes, splits * q_elements(p) * bytes, splits, row, kPiece),
      read_stream("k", k_elements(p) * bytes, heads * key_rows * row, sharing, row, kPiece),
      read_stream("v", v_elements(p) * bytes, heads * key_rows * row_v, sharing, row_v, kPiece),
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p)), row_v, kPiece),
      write_stream("lse", lse_elements(p) * 4),
  };
  const double scores =
      static_cast<double>(heads * steps) * static_cast<double>(group_rows * tile.block_kv);
  Stage forward;
  forward.name = "forward";
  forward.sm_l2_bytes = static_cast<double>(result.read_bytes() + result.write_bytes());
  Stage combine;
  combine.name = "combine";
  if (config.split) {
    const std::int64_t o_parts = splits * o_elements(p) * 4;
    const std::int64_t lse_parts = splits * lse_elements(p) * 4;
    const auto written = static_cast<double>(result.write_bytes());
    const auto parts = static_cast<double>(o_parts + lse_parts);
    result.streams.push_back({"o_parts", o_parts, o_parts, o_parts, 1});
    result.streams.push_back({"lse_parts", lse_parts, lse_parts, lse_parts, 1});
    forward.sm_l2_bytes += parts - written;
    combine.sm_l2_bytes = parts + written;
    combine.exp_ops = static_cast<double>(splits * lse_elements(p));
    combine.fp32_ops = static_cast<double>(splits * o_elements(p));
    combine.tiles = static_cast<double>(lse_elements(p));
    combine.tiles_per_sm = 16;  // of kCombineWarps warps
    combine.latencies = 2;      // LSE, then O
  }
  forward.tensor_ops = scores * 4.0 * config.headdim;
  forward.exp_ops = scores;
  forward.fp32_ops = scores * fp32_ops;
  forward.tiles = static_cast<double>(heads * query_tiles * splits);
  if (steps > 0) {
    forward.largest_tile =
        static_cast<double>(most_steps * query_tiles * splits) / static_cast<double>(steps);
  }
  // The next tile's Q and first keys are on their way before a tile ends; with one tile of Q they
  // wait for its last product.
  forward.latencies = config.early_release ? 2 : 1;
  forward.path = TensorPath::wgmma;
  result.stages = {forward};
  if (config.split) result.stages.push_back(combine);
  return result;
}

std::string describe(const Problem& p, const CompiledTile& tile) {
  const Config& config = tile.config;
  std::string text = std::to_string(config.block_m()) + " queries x " +
                     std::to_string(config.block_n) + " keys, " + std::to_string(config.stages) +
                     " stages";
  if (config.stage_blocks > 1) text += " of " + std::to_string(config.stage_blocks) + " blocks";
  if (config.pair) text += ", CTAs in pairs";
  if (config.split) {
    text += ", keys in parts: " + std::to_string(splits_for(p, config)) +
            ", heads in a tile: " + std::to_string(packed_heads(p, config));
  }
  return text + "; " + std::string(tile.why);
}

}  // namespace rooflash::hopper
