// FlashAttention-2 forward on the CPU, with the GPU kernel's loop order and rounding points:
// queries outside, keys inside from last to first, online softmax whose maximum may lag
// behind, P rounded to the dtype before P V, O divided by the row sum once at the end. Key blocks
// that no row of the query block sees are skipped. Slow memory beyond inputs and outputs: none.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/host_math.hpp"
#include "common/mask.hpp"
#include "common/two_level_memory.hpp"
#include "config.hpp"
#include "variants.hpp"

namespace rooflash::fa2 {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

Config compiled_for(const Problem& p) {
  return config_of(std::max(p.headdim, p.headdim_v));
}

// The Q tile, one K tile and one V tile; the GPU's second stage of them only hides latency. S, P
// and O are in registers.
std::int64_t needed_bytes(const Problem& p, Tile tile) {
  return (tile.block_q + 2 * tile.block_kv) * compiled_for(p).headdim * size_bytes(p.dtype);
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  const Config compiled = compiled_for(p);
  return fit_tile({compiled.block_m, compiled.block_n}, sram_bytes,
                  [&](Tile tile) { return needed_bytes(p, tile); });
}

std::string limits(const Problem& p) {
  const Tile tile = choose_tile(p, std::numeric_limits<std::int64_t>::max());
  return tiled_limits("fa2", p, p.batch * p.heads_q * ceil_div(p.seqlen_q, tile.block_q),
                      "query blocks");
}

KeyBlocks blocks_of(const Problem& p, std::int64_t first_row, Tile tile) {
  return key_blocks(band_of(p), first_row, std::min(tile.block_q, p.seqlen_q - first_row),
                    p.seqlen_kv, tile.block_kv);
}

// What a CTA keeps in registers.
struct State {
  State(TwoLevelMemory& memory, Tile tile, std::int64_t width)
      : scores(memory, tile.block_q, tile.block_kv, kInRegisters),
        o(memory, tile.block_q, width, kInRegisters),
        row_max(memory, tile.block_q, 1, kInRegisters),
        row_sum(memory, tile.block_q, 1, kInRegisters) {}
  SramTile scores;   // then the weights
  SramTile o;        // not yet divided by the row sums
  SramTile row_max;  // that weights are taken against: of the scaled scores, in units of log2
  SramTile row_sum;
};

// Turns raw scores into unnormalised weights and rescales what was summed before.
void online_softmax(const Problem& p, State& state, std::int64_t first_row,
                    std::int64_t first_key) {
  const auto scale_log2 = static_cast<float>(softmax_scale(p) * std::numbers::log2e);
  const std::int64_t rows = std::min(state.scores.rows(), p.seqlen_q - first_row);
  for (std::int64_t r = 0; r < rows; ++r) {
    const KeyRange keys = visible_keys(p, first_row + r);
    float* s = state.scores.row(r);
    const float old_max = state.row_max.at(r, 0);
    float block_max = kMinusInfinity;
    for (std::int64_t c = 0; c < state.scores.cols(); ++c) {
      const std::int64_t key = first_key + c;
      if (key < keys.begin || key >= keys.end) s[c] = kMinusInfinity;
      block_max = std::max(block_max, s[c]);
    }
    const bool moves = block_max * scale_log2 > old_max + kLagLog2;
    const float new_max = moves ? block_max * scale_log2 : old_max;
    state.row_max.at(r, 0) = new_max;
    // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
    const float shift = new_max == kMinusInfinity ? 0.0F : new_max;
    const float rescale = std::exp2(old_max - shift);
    float sum = 0.0F;
    for (std::int64_t c = 0; c < state.scores.cols(); ++c) {
      const float weight = std::exp2(s[c] * scale_log2 - shift);
      sum += weight;
      s[c] = round_to(p.dtype, weight);
    }
    state.row_sum.at(r, 0) = state.row_sum.at(r, 0) * rescale + sum;
    for (std::int64_t c = 0; c < state.o.cols(); ++c) state.o.at(r, c) *= rescale;
  }
}

// Divides by the row sums; the row maxima become LSE.
void normalise(State& state) {
  for (std::int64_t r = 0; r < state.o.rows(); ++r) {
    const float sum = state.row_sum.at(r, 0);
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
    for (std::int64_t c = 0; c < state.o.cols(); ++c) state.o.at(r, c) *= inverse;
    state.row_max.at(r, 0) =
        sum == 0.0F ? kMinusInfinity
                    : state.row_max.at(r, 0) * std::numbers::ln2_v<float> + std::log(sum);
  }
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  const std::int64_t width = compiled_for(p).headdim;
  const std::int64_t bytes = size_bytes(p.dtype);
  const std::int64_t q_stride = p.heads_q * p.headdim;
  const std::int64_t k_stride = p.heads_kv * p.headdim;
  const std::int64_t v_stride = p.heads_kv * p.headdim_v;
  const std::int64_t o_stride = p.heads_q * p.headdim_v;
  SramTile q_tile(memory, tile.block_q, width, bytes);
  SramTile k_tile(memory, tile.block_kv, width, bytes);
  SramTile v_tile(memory, tile.block_kv, width, bytes);
  State state(memory, tile, width);

  const auto query_block = [&](std::int64_t b, std::int64_t h, std::int64_t first_row) {
    const std::int64_t h_kv = h / (p.heads_q / p.heads_kv);
    const std::int64_t rows = std::min(tile.block_q, p.seqlen_q - first_row);
    const KeyBlocks blocks = blocks_of(p, first_row, tile);
    state.o.fill(0.0F);
    state.row_max.fill(kMinusInfinity);
    state.row_sum.fill(0.0F);
    if (blocks.begin < blocks.end) {
      memory.load(q_tile, t.q + row_offset(b, first_row, h, p.seqlen_q, p.heads_q, p.headdim), rows,
                  p.headdim, q_stride, p.dtype);
    }
    for (std::int64_t block = blocks.end; block-- > blocks.begin;) {
      const std::int64_t first_key = block * tile.block_kv;
      const std::int64_t keys = std::min(tile.block_kv, p.seqlen_kv - first_key);
      memory.load(k_tile, t.k + row_offset(b, first_key, h_kv, p.seqlen_kv, p.heads_kv, p.headdim),
                  keys, p.headdim, k_stride, p.dtype);
      memory.load(v_tile,
                  t.v + row_offset(b, first_key, h_kv, p.seqlen_kv, p.heads_kv, p.headdim_v), keys,
                  p.headdim_v, v_stride, p.dtype);
      state.scores.fill(0.0F);
      add_product_transposed(state.scores, q_tile, k_tile);
      online_softmax(p, state, first_row, first_key);
      add_product(state.o, state.scores, v_tile);
    }
    normalise(state);
    memory.store(state.o, t.o + row_offset(b, first_row, h, p.seqlen_q, p.heads_q, p.headdim_v),
                 rows, p.headdim_v, o_stride, output_dtype(p));
    memory.store(state.row_max, t.lse + (b * p.heads_q + h) * p.seqlen_q + first_row, rows, 1, 1,
                 DType::fp32);
  };
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.heads_q; ++h) {
      for (std::int64_t row = 0; row < p.seqlen_q; row += tile.block_q) query_block(b, h, row);
    }
  }
}

Traffic traffic(const Problem& p, Tile tile) {
  const std::int64_t heads = p.batch * p.heads_q;
  const std::int64_t bytes = size_bytes(p.dtype);
  const std::int64_t query_blocks = ceil_div(p.seqlen_q, tile.block_q);
  std::int64_t query_rows = 0;  // loaded, per head
  std::int64_t key_rows = 0;
  std::int64_t steps = 0;       // (query block, key block) pairs, per head
  std::int64_t most_steps = 0;  // of one query block
  for (std::int64_t row = 0; row < p.seqlen_q; row += tile.block_q) {
    const KeyBlocks blocks = blocks_of(p, row, tile);
    if (blocks.begin == blocks.end) continue;
    query_rows += std::min(tile.block_q, p.seqlen_q - row);
    key_rows += std::min(blocks.end * tile.block_kv, p.seqlen_kv) - blocks.begin * tile.block_kv;
    steps += blocks.end - blocks.begin;
    most_steps = std::max(most_steps, blocks.end - blocks.begin);
  }
  const std::int64_t sharing = query_blocks * (p.heads_q / p.heads_kv);
  const std::int64_t row = p.headdim * bytes;
  const std::int64_t row_v = p.headdim_v * bytes;
  constexpr std::int64_t kPiece = 32;  // two neighbouring lanes, 16 bytes each
  Traffic result;
  result.streams = {
      read_stream("q", q_elements(p) * bytes, heads * query_rows * row, 1, row, kPiece),
      read_stream("k", k_elements(p) * bytes, heads * key_rows * row, sharing, row, kPiece),
      read_stream("v", v_elements(p) * bytes, heads * key_rows * row_v, sharing, row_v, kPiece),
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p)), row_v, row_v),
      write_stream("lse", lse_elements(p) * 4),
  };
  const double scores = static_cast<double>(heads * steps * tile.block_q * tile.block_kv);
  const Config compiled = compiled_for(p);
  const double width = compiled.headdim;
  const auto keys = static_cast<double>(tile.block_kv);
  Stage forward;
  forward.name = "forward";
  forward.sm_l2_bytes = static_cast<double>(result.read_bytes() + result.write_bytes());
  forward.tensor_ops = scores * 4.0 * width;
  forward.exp_ops = scores;
  // Of a score: maximum, scaling, sum, half a conversion. Rescaling is rare.
  forward.fp32_ops = scores * 3.5;
  // A warp reads K and V of the step, and its own rows of Q once more.
  forward.smem_bytes = scores * static_cast<double>(size_bytes(p.dtype)) * width *
                       (2.0 / compiled.rows_per_warp() + 1.0 / keys);
  forward.tiles = static_cast<double>(heads * query_blocks);
  forward.tiles_per_sm = compiled.ctas_per_sm;
  if (steps > 0) {
    forward.largest_tile =
        static_cast<double>(most_steps * query_blocks) / static_cast<double>(steps);
  }
  forward.latencies = 4;  // the launch of the CTA, Q and K, V, the way of O back to memory
  forward.path = TensorPath::mma_sync;
  result.stages = {forward};
  return result;
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "fa2",
    .summary = "FlashAttention-2: queries outside, one division at the end, mma.sync",
    .source = "arXiv 2307.08691, section 3",
    .variants = kVariants,
    .limits = limits,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
};

}  // namespace rooflash::fa2
