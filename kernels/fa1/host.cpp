// FlashAttention forward (algorithm 1) on the CPU, with the GPU kernel's loop order and rounding
// points: key blocks outside, query blocks inside; O in fp32, the row maximum and the row sum are
// fetched from slow memory and put back on each visit, O divided by its row sum every time; P
// rounded to the dtype before P V, which sums over all keys of a block.
// Pairs of blocks that see nothing of each other are skipped.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/host_math.hpp"
#include "common/mask.hpp"
#include "common/two_level_memory.hpp"
#include "config.hpp"
#include "variants.hpp"

namespace rooflash::fa1 {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Head dim of the compiled variant that serves the problem: rows are padded to it in SRAM.
std::int64_t padded_headdim(const Problem& p) {
  const std::int64_t width = std::max(p.headdim, p.headdim_v);
  return width <= 64 ? 64 : width <= 128 ? 128 : 256;
}

// One tile each of K, V, Q and P. S and O are in registers.
std::int64_t needed_bytes(const Problem& p, Tile tile) {
  return (tile.block_q + 2 * tile.block_kv) * padded_headdim(p) * size_bytes(p.dtype) +
         tile.block_q * tile.block_kv * size_bytes(p.dtype);
}

template <int kHeaddim>
Tile compiled_tile(std::int64_t sram_bytes) {
  const bool large = sram_bytes >= Config<kHeaddim, true>::kSmemBytes;
  return {kBlockM, large ? Config<kHeaddim, true>::kBlockN : Config<kHeaddim, false>::kBlockN};
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  const std::int64_t width = padded_headdim(p);
  const Tile compiled = width == 64    ? compiled_tile<64>(sram_bytes)
                        : width == 128 ? compiled_tile<128>(sram_bytes)
                                       : compiled_tile<256>(sram_bytes);
  return fit_tile(compiled, sram_bytes, [&](Tile tile) { return needed_bytes(p, tile); });
}

std::string limits(const Problem& p) {
  return tiled_limits("fa1", p, p.batch * p.heads_q, "heads of the batch");
}

// Rows of the statistics of one head: whole query blocks.
std::int64_t padded_rows(const Problem& p) {
  return ceil_div(p.seqlen_q, kBlockM) * kBlockM;
}
std::int64_t statistics_elements(const Problem& p) {
  return p.batch * p.heads_q * padded_rows(p) * 2;
}

// O in fp32, then maximum and sum of each row.
std::int64_t workspace_bytes(const Problem& p) {
  return (o_elements(p) + statistics_elements(p)) * 4;
}

std::int64_t rows_of(const Problem& p, Tile tile, std::int64_t first_row) {
  return std::min(tile.block_q, p.seqlen_q - first_row);
}
std::int64_t keys_of(const Problem& p, Tile tile, std::int64_t first_key) {
  return std::min(tile.block_kv, p.seqlen_kv - first_key);
}
KeyBlocks blocks_of(const Problem& p, Tile tile, std::int64_t first_row) {
  return key_blocks(band_of(p), first_row, rows_of(p, tile, first_row), p.seqlen_kv, tile.block_kv);
}
// First rows of the query blocks that a key block visits: [begin, end).
QueryRows visited_rows(const Problem& p, Tile tile, std::int64_t first_key) {
  const QueryRows rows = query_rows(band_of(p), first_key, keys_of(p, tile, first_key), p.seqlen_q);
  if (rows.begin >= rows.end) return {0, 0};
  return {rows.begin / tile.block_q * tile.block_q, rows.end};
}

// What a group of warps has of a query block during a visit: in registers, but for P.
struct State {
  State(TwoLevelMemory& memory, Tile tile, std::int64_t width, std::int64_t weight_bytes)
      : scores(memory, tile.block_q, tile.block_kv, weight_bytes),
        product(memory, tile.block_q, width, kInRegisters),
        o(memory, tile.block_q, width, kInRegisters),
        statistics(memory, tile.block_q, 2, kInRegisters),
        keep(memory, tile.block_q, 1, kInRegisters),
        lse(memory, tile.block_q, 1, kInRegisters) {}
  SramTile scores;      // then the weights, which the warps exchange in SRAM
  SramTile product;     // P V of one key block
  SramTile o;           // divided by the row sums so far
  SramTile statistics;  // maximum of the scaled scores, in units of log2; row sum
  SramTile keep;        // share of the old O in the new one
  SramTile lse;
};

// Turns raw scores into weights, brings the statistics up to date.
void softmax(const Problem& p, State& state, std::int64_t first_row, std::int64_t first_key) {
  const auto scale_log2 = static_cast<float>(softmax_scale(p) * std::numbers::log2e);
  const std::int64_t rows = std::min(state.scores.rows(), p.seqlen_q - first_row);
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyRange keys = visible_keys(p, first_row + r);
    float* s = state.scores.row(r);
    float block_max = kMinusInfinity;
    for (std::int64_t c = 0; c < state.scores.cols(); ++c) {
      const std::int64_t key = first_key + c;
      if (key < keys.begin || key >= keys.end) s[c] = kMinusInfinity;
      block_max = std::max(block_max, s[c]);
    }
    float& row_max = state.statistics.at(r, 0);
    float& row_sum = state.statistics.at(r, 1);
    const float new_max = std::max(row_max, block_max * scale_log2);
    // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
    const float shift = new_max == kMinusInfinity ? 0.0F : new_max;
    const float old_sum = row_sum * std::exp2(row_max - shift);
    float sum = 0.0F;
    for (std::int64_t c = 0; c < state.scores.cols(); ++c) {
      const float weight = std::exp2(s[c] * scale_log2 - shift);
      sum += weight;
      s[c] = round_to(p.dtype, weight);
    }
    row_max = new_max;
    row_sum = old_sum + sum;
    const float inverse = row_sum == 0.0F ? 0.0F : 1.0F / row_sum;
    state.keep.at(r, 0) = old_sum * inverse;
    state.lse.at(r, 0) =
        row_sum == 0.0F ? kMinusInfinity : row_max * std::numbers::ln2_v<float> + std::log(row_sum);
  }
}

// P V, added to what is kept of O.
void add_values(State& state, const SramTile& v_tile) {
  state.product.fill(0.0F);
  add_product(state.product, state.scores, v_tile);
  for (std::int64_t r = 0; r < state.o.rows(); ++r) {
    const float row_sum = state.statistics.at(r, 1);
    const float inverse = row_sum == 0.0F ? 0.0F : 1.0F / row_sum;
    for (std::int64_t c = 0; c < state.o.cols(); ++c) {
      float& o = state.o.at(r, c);
      o = o * state.keep.at(r, 0) + state.product.at(r, c) * inverse;
    }
  }
}

// Algorithm 1 for one head of one batch item.
class HeadSweep {
 public:
  HeadSweep(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory,
            float* workspace)
      : p_(p),
        t_(t),
        tile_(tile),
        memory_(memory),
        workspace_(workspace),
        q_tile_(memory, tile.block_q, padded_headdim(p), size_bytes(p.dtype)),
        k_tile_(memory, tile.block_kv, padded_headdim(p), size_bytes(p.dtype)),
        v_tile_(memory, tile.block_kv, padded_headdim(p), size_bytes(p.dtype)),
        state_(memory, tile, padded_headdim(p), size_bytes(p.dtype)) {}

  void run(std::int64_t b, std::int64_t h) {
    b_ = b;
    h_ = h;
    for (std::int64_t row = 0; row < p_.seqlen_q; row += tile_.block_q) {
      const KeyBlocks blocks = blocks_of(p_, tile_, row);
      if (blocks.begin == blocks.end) store_empty(row);
    }
    for (std::int64_t key = 0; key < p_.seqlen_kv; key += tile_.block_kv) {
      const QueryRows rows = visited_rows(p_, tile_, key);
      if (rows.begin == rows.end) continue;
      load_keys(key);
      for (std::int64_t row = rows.begin; row < rows.end; row += tile_.block_q) visit(row, key);
    }
  }

 private:
  void load_keys(std::int64_t key) {
    const std::int64_t h_kv = h_ / (p_.heads_q / p_.heads_kv);
    const std::int64_t keys = keys_of(p_, tile_, key);
    memory_.load(k_tile_, t_.k + row_offset(b_, key, h_kv, p_.seqlen_kv, p_.heads_kv, p_.headdim),
                 keys, p_.headdim, p_.heads_kv * p_.headdim, p_.dtype);
    memory_.load(v_tile_, t_.v + row_offset(b_, key, h_kv, p_.seqlen_kv, p_.heads_kv, p_.headdim_v),
                 keys, p_.headdim_v, p_.heads_kv * p_.headdim_v, p_.dtype);
  }

  // Where O and the statistics of `row` lie in the workspace.
  float* stored_o(std::int64_t row) const {
    return workspace_ + row_offset(b_, row, h_, p_.seqlen_q, p_.heads_q, p_.headdim_v);
  }
  float* stored_statistics(std::int64_t row) const {
    return workspace_ + o_elements(p_) +
           ((b_ * p_.heads_q + h_) * padded_rows(p_) + row) * std::int64_t{2};
  }

  void visit(std::int64_t row, std::int64_t key) {
    const std::int64_t rows = rows_of(p_, tile_, row);
    const std::int64_t block = key / tile_.block_kv;
    const KeyBlocks blocks = blocks_of(p_, tile_, row);
    const std::int64_t q_stride = p_.heads_q * p_.headdim;
    const std::int64_t o_stride = p_.heads_q * p_.headdim_v;
    memory_.load(q_tile_, t_.q + row_offset(b_, row, h_, p_.seqlen_q, p_.heads_q, p_.headdim), rows,
                 p_.headdim, q_stride, p_.dtype);
    if (block > blocks.begin) {
      memory_.load(state_.o, stored_o(row), rows, p_.headdim_v, o_stride, DType::fp32);
      memory_.load(state_.statistics, stored_statistics(row), tile_.block_q, 2, 2, DType::fp32);
    } else {
      clear();
    }
    state_.scores.fill(0.0F);
    add_product_transposed(state_.scores, q_tile_, k_tile_);
    softmax(p_, state_, row, key);
    add_values(state_, v_tile_);
    if (block + 1 < blocks.end) {
      memory_.store(state_.o, stored_o(row), rows, p_.headdim_v, o_stride, DType::fp32);
      memory_.store(state_.statistics, stored_statistics(row), tile_.block_q, 2, 2, DType::fp32);
    } else {
      store_result(row);
    }
  }

  void clear() {
    state_.o.fill(0.0F);
    for (std::int64_t r = 0; r < tile_.block_q; ++r) {
      state_.statistics.at(r, 0) = kMinusInfinity;
      state_.statistics.at(r, 1) = 0.0F;
    }
  }

  void store_empty(std::int64_t row) {
    state_.o.fill(0.0F);
    state_.lse.fill(kMinusInfinity);
    store_result(row);
  }

  void store_result(std::int64_t row) {
    const std::int64_t rows = rows_of(p_, tile_, row);
    memory_.store(state_.o, t_.o + row_offset(b_, row, h_, p_.seqlen_q, p_.heads_q, p_.headdim_v),
                  rows, p_.headdim_v, p_.heads_q * p_.headdim_v, output_dtype(p_));
    memory_.store(state_.lse, t_.lse + (b_ * p_.heads_q + h_) * p_.seqlen_q + row, rows, 1, 1,
                  DType::fp32);
  }

  const Problem& p_;
  const HostTensors& t_;
  const Tile tile_;
  TwoLevelMemory& memory_;
  float* workspace_;
  std::int64_t b_ = 0;
  std::int64_t h_ = 0;
  SramTile q_tile_, k_tile_, v_tile_;
  State state_;
};

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  const std::int64_t elements = o_elements(p) + statistics_elements(p);
  std::vector<float> workspace = memory.allocate_slow(elements, DType::fp32);
  HeadSweep sweep(p, t, tile, memory, workspace.data());
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads_q; ++h) sweep.run(b, h);
  }
  memory.release_slow(elements, DType::fp32);
}

// Of one head.
struct Visits {
  std::int64_t pairs = 0;        // of a query block and a key block
  std::int64_t query_rows = 0;   // loaded, over all visits
  std::int64_t kept_rows = 0;    // put back and fetched again
  std::int64_t kept_blocks = 0;  // the same in query blocks
  std::int64_t once_kept = 0;    // rows that are put back at least once
  std::int64_t key_rows = 0;     // loaded
  std::int64_t sweeps = 0;       // key blocks that visit some query block
};

Visits count_visits(const Problem& p, Tile tile) {
  Visits visits;
  for (std::int64_t row = 0; row < p.seqlen_q; row += tile.block_q) {
    const KeyBlocks blocks = blocks_of(p, tile, row);
    const std::int64_t rows = rows_of(p, tile, row);
    const std::int64_t count = blocks.end - blocks.begin;
    visits.pairs += count;
    visits.query_rows += rows * count;
    if (count < 2) continue;
    visits.kept_rows += rows * (count - 1);
    visits.kept_blocks += count - 1;
    visits.once_kept += rows;
  }
  for (std::int64_t key = 0; key < p.seqlen_kv; key += tile.block_kv) {
    const QueryRows rows = visited_rows(p, tile, key);
    if (rows.begin == rows.end) continue;
    visits.key_rows += keys_of(p, tile, key);
    ++visits.sweeps;
  }
  return visits;
}

Stage forward_stage(const Problem& p, Tile tile, const Visits& visits) {
  const auto heads = static_cast<double>(p.batch * p.heads_q);
  const auto bytes = static_cast<double>(size_bytes(p.dtype));
  const auto width = static_cast<double>(padded_headdim(p));
  const auto queries = static_cast<double>(tile.block_q);
  const auto keys = static_cast<double>(tile.block_kv);
  const double pairs = heads * static_cast<double>(visits.pairs);
  const double scores = pairs * queries * keys;
  const double outputs = pairs * queries * width;
  constexpr int kCombining = 4 * kSlices;  // threads that work out the factors of a row
  Stage forward;
  forward.name = "forward";
  forward.tensor_ops = scores * 4.0 * width;
  forward.exp_ops = scores + pairs * queries * kCombining;
  // Of a score: maximum, scaling, sum, half a conversion. Of an element of O: the old one's factor
  // and the new one's.
  forward.fp32_ops = scores * 3.5 + outputs * 2.0;
  // Each warp reads all of Q, its slice of K, its columns of V, and what the others have of P.
  forward.smem_bytes =
      pairs * bytes *
      (kSlices * queries * width + 2.0 * keys * width + (kSlices - 1.0) * queries * keys);
  forward.tiles = heads;
  forward.tiles_per_sm = 1;  // by registers and shared memory
  // The launch of the CTA and the way of O back to memory; K, V and the first Q of each sweep.
  forward.latencies = 2.0 + static_cast<double>(visits.sweeps);
  forward.path = TensorPath::mma_sync;
  return forward;
}

Traffic traffic(const Problem& p, Tile tile) {
  const std::int64_t heads = p.batch * p.heads_q;
  const std::int64_t bytes = size_bytes(p.dtype);
  const Visits visits = count_visits(p, tile);
  const std::int64_t group = p.heads_q / p.heads_kv;
  const std::int64_t row = p.headdim * bytes;
  const std::int64_t row_v = p.headdim_v * bytes;
  const std::int64_t row_kept = p.headdim_v * 4;
  const std::int64_t kept = heads * visits.kept_rows * row_kept;
  const std::int64_t statistics = heads * visits.kept_blocks * tile.block_q * 8;
  constexpr std::int64_t kPiece = 32;    // two neighbouring lanes, 16 bytes each
  constexpr std::int64_t kColumns = 16;  // of O that four lanes fetch or store with one instruction
  Traffic result;
  result.streams = {
      read_stream("q", q_elements(p) * bytes, heads * visits.query_rows * row, 1, row, kPiece),
      read_stream("k", k_elements(p) * bytes, heads * visits.key_rows * row, group, row, kPiece),
      read_stream("v", v_elements(p) * bytes, heads * visits.key_rows * row_v, group, row_v,
                  kPiece),
      {"accumulator", heads * visits.once_kept * row_kept, kept, kept, 1, row_kept, kColumns * 4},
      {"statistics", heads * visits.once_kept * 8, statistics, statistics, 1},
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p)), row_v,
                   kColumns * size_bytes(output_dtype(p))),
      write_stream("lse", lse_elements(p) * 4),
  };
  Stage forward = forward_stage(p, tile, visits);
  forward.sm_l2_bytes = static_cast<double>(result.read_bytes() + result.write_bytes());
  result.stages = {forward};
  return result;
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "fa1",
    .summary = "FlashAttention: keys outside, O rewritten in memory on each sweep, mma.sync",
    .source = "arXiv 2205.14135, algorithm 1",
    .variants = kVariants,
    .limits = limits,
    .workspace_bytes = workspace_bytes,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
};

}  // namespace rooflash::fa1
