// Memory-efficient attention on the CPU, with the GPU kernel's loop order and rounding points:
// queries outside, keys inside from first to last, online softmax, P through SRAM in the dtype
// between the two products, O divided by the row sum once at the end. In fp32 each key block's part
// of O is summed up apart and then added. Key blocks that no row of the query block sees are
// skipped. Slow memory beyond inputs and outputs: none.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "common/host_math.hpp"
#include "common/mask.hpp"
#include "common/two_level_memory.hpp"
#include "config.hpp"
#include "variants.hpp"

namespace rooflash::sdpa {
namespace {

constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// Head dim of the compiled variant that serves the problem: rows are padded to it in SRAM.
std::int64_t padded_headdim(const Problem& p) {
  const std::int64_t width = std::max(p.headdim, p.headdim_v);
  return width <= 64 ? 64 : width <= 128 ? 128 : 256;
}

// The Q tile, one K tile, one V tile and the weights. S and O are in registers.
std::int64_t needed_bytes(const Problem& p, Tile tile) {
  return ((tile.block_q + 2 * tile.block_kv) * padded_headdim(p) + tile.block_q * tile.block_kv) *
         size_bytes(p.dtype);
}

template <int kHeaddim>
Tile compiled_tile(DType dtype) {
  if (dtype == DType::fp32) return {FmaConfig<kHeaddim>::kBlockM, FmaConfig<kHeaddim>::kBlockN};
  return {MmaConfig<kHeaddim>::kBlockM, MmaConfig<kHeaddim>::kBlockN};
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  const std::int64_t width = padded_headdim(p);
  const Tile compiled = width == 64    ? compiled_tile<64>(p.dtype)
                        : width == 128 ? compiled_tile<128>(p.dtype)
                                       : compiled_tile<256>(p.dtype);
  return fit_tile(compiled, sram_bytes, [&](Tile tile) { return needed_bytes(p, tile); });
}

std::string limits(const Problem& p) {
  const Tile tile = choose_tile(p, std::numeric_limits<std::int64_t>::max());
  return tiled_limits("sdpa", p, p.batch * p.heads_q * ceil_div(p.seqlen_q, tile.block_q),
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
  SramTile scores;
  SramTile o;        // not yet divided by the row sums
  SramTile row_max;  // of the scaled scores, in units of log2
  SramTile row_sum;
};

// Turns raw scores into unnormalised weights, which go to SRAM, and rescales what was summed
// before.
void online_softmax(const Problem& p, State& state, SramTile& weights, std::int64_t first_row,
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
    const float new_max = std::max(old_max, block_max * scale_log2);
    state.row_max.at(r, 0) = new_max;
    // A row with no key yet keeps -inf; 0 in its place avoids inf - inf.
    const float shift = new_max == kMinusInfinity ? 0.0F : new_max;
    const float rescale = std::exp2(old_max - shift);
    float sum = 0.0F;
    for (std::int64_t c = 0; c < state.scores.cols(); ++c) {
      const float weight = std::exp2(std::fma(s[c], scale_log2, -shift));
      sum += weight;
      weights.at(r, c) = round_to(p.dtype, weight);
    }
    state.row_sum.at(r, 0) = state.row_sum.at(r, 0) * rescale + sum;
    for (std::int64_t c = 0; c < state.o.cols(); ++c) state.o.at(r, c) *= rescale;
  }
}

// O += P V. fp32 sums up the block apart: over a long row, that keeps the rounding errors of the
// many additions small.
void weighted_sum(const Problem& p, State& state, SramTile& of_block, const SramTile& weights,
                  const SramTile& v_tile) {
  if (p.dtype != DType::fp32) {
    add_product(state.o, weights, v_tile);
    return;
  }
  of_block.fill(0.0F);
  add_product(of_block, weights, v_tile);
  for (std::int64_t r = 0; r < state.o.rows(); ++r) {
    for (std::int64_t c = 0; c < state.o.cols(); ++c) state.o.at(r, c) += of_block.at(r, c);
  }
}

// Divides by the row sums; the row maxima become LSE. fp32 divides indeed, for a product with the
// reciprocal would be rounded twice.
void normalise(const Problem& p, State& state) {
  for (std::int64_t r = 0; r < state.o.rows(); ++r) {
    const float sum = state.row_sum.at(r, 0);
    const float inverse = sum == 0.0F ? 0.0F : 1.0F / sum;
    for (std::int64_t c = 0; c < state.o.cols(); ++c) {
      float& o = state.o.at(r, c);
      o = p.dtype == DType::fp32 && sum != 0.0F ? o / sum : o * inverse;
    }
    state.row_max.at(r, 0) =
        sum == 0.0F ? kMinusInfinity
                    : state.row_max.at(r, 0) * std::numbers::ln2_v<float> + std::log(sum);
  }
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  const std::int64_t width = padded_headdim(p);
  const std::int64_t bytes = size_bytes(p.dtype);
  const std::int64_t q_stride = p.heads_q * p.headdim;
  const std::int64_t k_stride = p.heads_kv * p.headdim;
  const std::int64_t v_stride = p.heads_kv * p.headdim_v;
  const std::int64_t o_stride = p.heads_q * p.headdim_v;
  SramTile q_tile(memory, tile.block_q, width, bytes);
  SramTile k_tile(memory, tile.block_kv, width, bytes);
  SramTile v_tile(memory, tile.block_kv, width, bytes);
  SramTile weights(memory, tile.block_q, tile.block_kv, bytes);
  SramTile of_block(memory, tile.block_q, width, kInRegisters);
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
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      const std::int64_t first_key = block * tile.block_kv;
      const std::int64_t keys = std::min(tile.block_kv, p.seqlen_kv - first_key);
      memory.load(k_tile, t.k + row_offset(b, first_key, h_kv, p.seqlen_kv, p.heads_kv, p.headdim),
                  keys, p.headdim, k_stride, p.dtype);
      memory.load(v_tile,
                  t.v + row_offset(b, first_key, h_kv, p.seqlen_kv, p.heads_kv, p.headdim_v), keys,
                  p.headdim_v, v_stride, p.dtype);
      state.scores.fill(0.0F);
      add_product_transposed(state.scores, q_tile, k_tile);
      online_softmax(p, state, weights, first_row, first_key);
      weighted_sum(p, state, of_block, weights, v_tile);
    }
    normalise(p, state);
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

// Of one head.
struct Steps {
  std::int64_t query_rows = 0;  // loaded
  std::int64_t key_rows = 0;
  std::int64_t pairs = 0;  // of a query block and a key block
  std::int64_t most = 0;   // of one query block
};

Steps count_steps(const Problem& p, Tile tile) {
  Steps steps;
  for (std::int64_t row = 0; row < p.seqlen_q; row += tile.block_q) {
    const KeyBlocks blocks = blocks_of(p, row, tile);
    if (blocks.begin == blocks.end) continue;
    steps.query_rows += std::min(tile.block_q, p.seqlen_q - row);
    steps.key_rows +=
        std::min(blocks.end * tile.block_kv, p.seqlen_kv) - blocks.begin * tile.block_kv;
    steps.pairs += blocks.end - blocks.begin;
    steps.most = std::max(steps.most, blocks.end - blocks.begin);
  }
  return steps;
}

Stage forward_stage(const Problem& p, Tile tile, const Steps& steps) {
  const bool fp32 = p.dtype == DType::fp32;
  const std::int64_t width = padded_headdim(p);
  const auto pairs = static_cast<double>(p.batch * p.heads_q * steps.pairs);
  const auto queries = static_cast<double>(tile.block_q);
  const auto keys = static_cast<double>(tile.block_kv);
  const double scores = pairs * queries * keys;
  const double outputs = pairs * queries * static_cast<double>(width);
  const auto bytes = static_cast<double>(size_bytes(p.dtype));
  Stage forward;
  forward.name = "forward";
  forward.tensor_ops = scores * 4.0 * static_cast<double>(width);
  // The weights; a rescaling factor a row, worked out by each half of the keys or each lane.
  constexpr double kFactors = 8;
  forward.exp_ops = scores + pairs * queries * kFactors;
  // Of a score: maximum, scaling, sum, half a conversion; of an element of O: one factor, and in
  // fp32 the block's part.
  forward.fp32_ops = scores * 3.5 + outputs * (fp32 ? 2.0 : 1.0);
  // How many warps read the same: on tensor cores, of two by two, Q and the weights two, K and V
  // two; of the four that share the rows in fp32, one and four.
  const double of_rows = (fp32 ? 1.0 : 2.0) * queries * (static_cast<double>(width) + keys);
  const double of_keys = (fp32 ? 4.0 : 2.0) * keys * 2.0 * static_cast<double>(width);
  forward.smem_bytes = pairs * bytes * (of_rows + of_keys + queries * keys);
  forward.tiles = static_cast<double>(p.batch * p.heads_q * ceil_div(p.seqlen_q, tile.block_q));
  forward.tiles_per_sm = width == 64 || (width == 128 && !fp32) ? 3 : 2;  // by registers
  if (steps.pairs > 0) {
    forward.largest_tile = static_cast<double>(steps.most * ceil_div(p.seqlen_q, tile.block_q)) /
                           static_cast<double>(steps.pairs);
  }
  forward.latencies = 4;  // the launch of the CTA, Q and K, V, the way of O back to memory
  forward.path = fp32 ? TensorPath::none : TensorPath::mma_sync;
  return forward;
}

Traffic traffic(const Problem& p, Tile tile) {
  const std::int64_t heads = p.batch * p.heads_q;
  const std::int64_t bytes = size_bytes(p.dtype);
  const Steps steps = count_steps(p, tile);
  const std::int64_t sharing = ceil_div(p.seqlen_q, tile.block_q) * (p.heads_q / p.heads_kv);
  const std::int64_t row = p.headdim * bytes;
  const std::int64_t row_v = p.headdim_v * bytes;
  constexpr std::int64_t kPiece = 32;  // two neighbouring lanes, 16 bytes each
  Traffic result;
  result.streams = {
      read_stream("q", q_elements(p) * bytes, heads * steps.query_rows * row, 1, row, kPiece),
      read_stream("k", k_elements(p) * bytes, heads * steps.key_rows * row, sharing, row, kPiece),
      read_stream("v", v_elements(p) * bytes, heads * steps.key_rows * row_v, sharing, row_v,
                  kPiece),
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p)), row_v, row_v),
      write_stream("lse", lse_elements(p) * 4),
  };
  Stage forward = forward_stage(p, tile, steps);
  forward.sm_l2_bytes = static_cast<double>(result.read_bytes() + result.write_bytes());
  result.stages = {forward};
  return result;
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "sdpa",
    .summary = "memory-efficient attention: keys streamed, weights through shared memory, mma.sync",
    .source = "arXiv 2112.05682",
    .variants = kVariants,
    .limits = limits,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
};

}  // namespace rooflash::sdpa
