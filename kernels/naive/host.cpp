// The unfused baseline on the CPU: S = scale Q K^T as a blocked GEMM, a softmax pass over the rows
// of S in place, O = P V as a blocked GEMM. S and P stay in slow memory in the input dtype, as in
// PyTorch's eager code, and take O(N^2) of it. Masks are applied in the softmax pass: masked
// scores are computed and written, and not read.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "common/host_math.hpp"
#include "common/two_level_memory.hpp"
#include "config.hpp"
#include "variants.hpp"

namespace rooflash::naive {
namespace {

// The first GEMM makes tiles of block_q x block_kv scores, the second one, whose output is narrow,
// tiles of block_kv rows of O: the 128 x 256 that vendor GEMMs use either way round.

// Columns of Q and K (rows of V) in one step of a GEMM.
std::int64_t depth_of(Tile tile) {
  return std::max<std::int64_t>(1, tile.block_q / 2);
}

// Columns of O in one tile of the second GEMM.
std::int64_t value_cols(const Problem& p, Tile tile) {
  return std::min(tile.block_q, p.headdim_v);
}

// Elements that both operands of a GEMM step take in SRAM.
std::int64_t sram_elements(Tile tile) {
  return (tile.block_q + tile.block_kv) * depth_of(tile);
}

// A row of scores that the softmax keeps in SRAM is read once, a longer one twice.
std::int64_t softmax_bytes(Tile tile) {
  return tile.block_q * tile.block_q * 2;
}
bool row_fits(const Problem& p, Tile tile) {
  return p.seqlen_kv * size_bytes(p.dtype) <= softmax_bytes(tile);
}

std::int64_t score_elements(const Problem& p) {
  return p.batch * p.heads_q * p.seqlen_q * p.seqlen_kv;
}

std::int64_t row_stride(const Problem& p) {
  return score_stride(p.seqlen_kv, size_bytes(p.dtype));
}

// Of all rows, with the room between them.
std::int64_t workspace_elements(const Problem& p) {
  return p.batch * p.heads_q * p.seqlen_q * row_stride(p);
}

std::int64_t workspace_bytes(const Problem& p) {
  return workspace_elements(p) * size_bytes(p.dtype);
}

std::string limits(const Problem& p) {
  constexpr std::int64_t kMostRows = std::int64_t{1} << 30;  // counted in 32 bits by cuBLAS
  if (p.seqlen_q > kMostRows || p.seqlen_kv > kMostRows) {
    return "naive takes at most 2^30 queries and keys";
  }
  return {};
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  return fit_tile({128, 256}, sram_bytes, [&](Tile tile) {
    return std::max(sram_elements(tile) * size_bytes(p.dtype), softmax_bytes(tile));
  });
}

void score_gemm(const Problem& p, const float* q, const float* k, float* scores, Tile tile,
                TwoLevelMemory& memory) {
  const std::int64_t depth = depth_of(tile);
  const std::int64_t bytes = size_bytes(p.dtype);
  SramTile q_tile(memory, tile.block_q, depth, bytes);
  SramTile k_tile(memory, tile.block_kv, depth, bytes);
  SramTile sum(memory, tile.block_q, tile.block_kv, kInRegisters);
  const auto scale = static_cast<float>(softmax_scale(p));
  for (std::int64_t i = 0; i < p.seqlen_q; i += tile.block_q) {
    const std::int64_t rows = std::min(tile.block_q, p.seqlen_q - i);
    for (std::int64_t j = 0; j < p.seqlen_kv; j += tile.block_kv) {
      const std::int64_t cols = std::min(tile.block_kv, p.seqlen_kv - j);
      sum.fill(0.0F);
      for (std::int64_t d = 0; d < p.headdim; d += depth) {
        const std::int64_t width = std::min(depth, p.headdim - d);
        const std::int64_t q_stride = p.heads_q * p.headdim;
        const std::int64_t k_stride = p.heads_kv * p.headdim;
        memory.load(q_tile, q + i * q_stride + d, rows, width, q_stride, p.dtype);
        memory.load(k_tile, k + j * k_stride + d, cols, width, k_stride, p.dtype);
        add_product_transposed(sum, q_tile, k_tile);
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < cols; ++c) sum.at(r, c) *= scale;
      }
      memory.store(sum, scores + i * row_stride(p) + j, rows, cols, row_stride(p), p.dtype);
    }
  }
}

// One row in place, chunk by chunk: a first pass for maximum and sum, a second one that writes the
// weights. A row that fits is one chunk, kept between the passes.
float softmax_row(const Problem& p, std::int64_t row, float* scores, SramTile& chunk, bool fits,
                  TwoLevelMemory& memory) {
  const KeyRange keys = visible_keys(p, row);
  const std::int64_t width = chunk.cols();
  float maximum = -std::numeric_limits<float>::infinity();
  float sum = 0.0F;
  // The part of the visible keys in [first, first + width), loaded to the chunk's beginning.
  const auto part_at = [&](std::int64_t first, bool load) {
    const KeyRange part{std::max(keys.begin, first),
                        std::min({keys.end, first + width, p.seqlen_kv})};
    if (load && part.begin < part.end) {
      memory.load(chunk, scores + part.begin, 1, part.end - part.begin, row_stride(p), p.dtype);
    }
    return part;
  };
  for (std::int64_t first = 0; first < p.seqlen_kv; first += width) {
    const KeyRange part = part_at(first, true);
    if (part.begin >= part.end) continue;
    const std::int64_t count = part.end - part.begin;
    const float old_maximum = maximum;
    for (std::int64_t i = 0; i < count; ++i) maximum = std::max(maximum, chunk.at(0, i));
    sum *= std::exp(old_maximum - maximum);
    for (std::int64_t i = 0; i < count; ++i) sum += std::exp(chunk.at(0, i) - maximum);
  }
  for (std::int64_t first = 0; first < p.seqlen_kv; first += width) {
    const KeyRange part = part_at(first, !fits);
    const std::int64_t cols = std::min(width, p.seqlen_kv - first);
    // From the last key, because a weight's place is never before its score's.
    for (std::int64_t j = first + cols; j-- > first;) {
      const bool visible = part.begin <= j && j < part.end;
      chunk.at(0, j - first) =
          visible ? std::exp(chunk.at(0, j - part.begin) - maximum) / sum : 0.0F;
    }
    memory.store(chunk, scores + first, 1, cols, row_stride(p), p.dtype);
  }
  return keys.begin < keys.end ? maximum + std::log(sum) : -std::numeric_limits<float>::infinity();
}

void softmax_pass(const Problem& p, float* scores, float* lse, Tile tile, TwoLevelMemory& memory) {
  const bool fits = row_fits(p, tile);
  const std::int64_t width = fits ? p.seqlen_kv : softmax_bytes(tile) / size_bytes(p.dtype);
  SramTile chunk(memory, 1, width, size_bytes(p.dtype));
  SramTile lse_value(memory, 1, 1, kInRegisters);
  for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
    lse_value.at(0, 0) = softmax_row(p, row, scores + row * row_stride(p), chunk, fits, memory);
    memory.store(lse_value, lse + row, 1, 1, 1, DType::fp32);
  }
}

void value_gemm(const Problem& p, const float* weights, const float* v, float* o, Tile tile,
                TwoLevelMemory& memory) {
  const std::int64_t depth = depth_of(tile);
  const std::int64_t width = value_cols(p, tile);
  const std::int64_t bytes = size_bytes(p.dtype);
  SramTile p_tile(memory, tile.block_kv, depth, bytes);
  SramTile v_tile(memory, depth, width, bytes);
  SramTile sum(memory, tile.block_kv, width, kInRegisters);
  const std::int64_t v_stride = p.heads_kv * p.headdim_v;
  const std::int64_t o_stride = p.heads_q * p.headdim_v;
  for (std::int64_t i = 0; i < p.seqlen_q; i += tile.block_kv) {
    const std::int64_t rows = std::min(tile.block_kv, p.seqlen_q - i);
    for (std::int64_t c = 0; c < p.headdim_v; c += width) {
      const std::int64_t cols = std::min(width, p.headdim_v - c);
      sum.fill(0.0F);
      for (std::int64_t j = 0; j < p.seqlen_kv; j += depth) {
        const std::int64_t keys = std::min(depth, p.seqlen_kv - j);
        memory.load(p_tile, weights + i * row_stride(p) + j, rows, keys, row_stride(p), p.dtype);
        memory.load(v_tile, v + j * v_stride + c, keys, cols, v_stride, p.dtype);
        add_product(sum, p_tile, v_tile);
      }
      memory.store(sum, o + i * o_stride + c, rows, cols, o_stride, output_dtype(p));
    }
  }
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  std::vector<float> scores = memory.allocate_slow(workspace_elements(p), p.dtype);
  const std::int64_t group = p.heads_q / p.heads_kv;
  // Three launches over all heads.
  const auto for_each_head = [&](auto work) {
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t h = 0; h < p.heads_q; ++h) {
        work(b, h, scores.data() + (b * p.heads_q + h) * p.seqlen_q * row_stride(p));
      }
    }
  };
  for_each_head([&](std::int64_t b, std::int64_t h, float* s) {
    score_gemm(p, t.q + row_offset(b, 0, h, p.seqlen_q, p.heads_q, p.headdim),
               t.k + row_offset(b, 0, h / group, p.seqlen_kv, p.heads_kv, p.headdim), s, tile,
               memory);
  });
  for_each_head([&](std::int64_t b, std::int64_t h, float* s) {
    softmax_pass(p, s, t.lse + (b * p.heads_q + h) * p.seqlen_q, tile, memory);
  });
  for_each_head([&](std::int64_t b, std::int64_t h, float* s) {
    value_gemm(p, s, t.v + row_offset(b, 0, h / group, p.seqlen_kv, p.heads_kv, p.headdim_v),
               t.o + row_offset(b, 0, h, p.seqlen_q, p.heads_q, p.headdim_v), tile, memory);
  });
  memory.release_slow(workspace_elements(p), p.dtype);
}

Traffic traffic(const Problem& p, Tile tile) {
  const std::int64_t heads = p.batch * p.heads_q;
  const std::int64_t bytes = size_bytes(p.dtype);
  const std::int64_t q_tiles = ceil_div(p.seqlen_q, tile.block_q);
  const std::int64_t kv_tiles = ceil_div(p.seqlen_kv, tile.block_kv);
  const std::int64_t o_tiles = ceil_div(p.seqlen_q, tile.block_kv);
  const std::int64_t width = value_cols(p, tile);
  const std::int64_t v_tiles = ceil_div(p.headdim_v, width);
  const std::int64_t depth = depth_of(tile);
  const std::int64_t scores = score_elements(p) * bytes;
  // The softmax reads the scores of visible keys alone, and writes all weights.
  std::int64_t visible = 0;
  for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
    const KeyRange keys = visible_keys(p, row);
    visible += std::max<std::int64_t>(0, keys.end - keys.begin);
  }
  const std::int64_t group = p.heads_q / p.heads_kv;
  const std::int64_t row = p.headdim * bytes;
  const std::int64_t row_v = p.headdim_v * bytes;
  const std::int64_t row_s = p.seqlen_kv * bytes;
  constexpr std::int64_t kPiece = 128;  // of a row in one request, TMA's and a quarter warp's
  const std::int64_t softmax_reads = (row_fits(p, tile) ? 1 : 2) * heads * visible * bytes;
  Traffic result;
  result.streams = {
      read_stream("q", q_elements(p) * bytes, q_elements(p) * bytes * kv_tiles, kv_tiles, row,
                  kPiece),
      read_stream("k", k_elements(p) * bytes, heads * p.seqlen_kv * row * q_tiles, q_tiles * group,
                  row, kPiece),
      read_stream("v", v_elements(p) * bytes, heads * p.seqlen_kv * row_v * o_tiles,
                  o_tiles * group, row_v, kPiece),
      {"scores", scores, softmax_reads, scores, 1},
      {"weights", 0, scores * v_tiles, scores, v_tiles},  // in place of the scores
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p))),
      write_stream("lse", lse_elements(p) * 4),
  };
  const auto padded = [](std::int64_t size, std::int64_t step) {
    return static_cast<double>(ceil_div(size, step) * step);
  };
  const auto elements = static_cast<double>(score_elements(p));
  // Of the rows of every operand of the GEMMs.
  const auto lane_bytes =
      static_cast<double>(std::gcd(std::gcd(std::int64_t{16}, row_s), std::gcd(row, row_v)));

  Stage score;
  score.name = "scores";
  score.sm_l2_bytes =
      static_cast<double>(result.streams[0].read_bytes + result.streams[1].read_bytes + scores);
  score.tensor_ops = 2.0 * static_cast<double>(heads) * padded(p.seqlen_q, tile.block_q) *
                     padded(p.seqlen_kv, tile.block_kv) * padded(p.headdim, depth);
  score.tiles = static_cast<double>(heads * q_tiles * kv_tiles);
  score.lane_bytes = lane_bytes;
  score.path = TensorPath::cublas;

  Stage softmax;
  softmax.name = "softmax";
  softmax.sm_l2_bytes = static_cast<double>(softmax_reads + scores + lse_elements(p) * 4);
  softmax.exp_ops = elements * 2.0;    // for the sum, and for the weight
  softmax.fp32_ops = elements * 12.0;  // masks, exponents, maximum, sum, quotient, conversions
  softmax.tiles = static_cast<double>(heads * p.seqlen_q);
  softmax.tiles_per_sm = static_cast<double>(kSoftmaxResident) /
                         static_cast<double>(softmax_threads(p.seqlen_kv, bytes));

  Stage output;
  output.name = "output";
  output.sm_l2_bytes = static_cast<double>(result.streams[2].read_bytes + scores * v_tiles +
                                           result.streams[5].write_bytes);
  output.tensor_ops = 2.0 * static_cast<double>(heads) * padded(p.seqlen_q, tile.block_kv) *
                      padded(p.headdim_v, width) * padded(p.seqlen_kv, depth);
  output.tiles = static_cast<double>(heads * o_tiles * v_tiles);
  output.lane_bytes = lane_bytes;
  output.path = TensorPath::cublas;
  result.stages = {score, softmax, output};
  return result;
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "naive",
    .summary = "unfused baseline: GEMM, softmax over scores in memory, GEMM",
    .source = "standard attention as in arXiv 2205.14135, algorithm 0",
    .variants = kVariants,
    .limits = limits,
    .workspace_bytes = workspace_bytes,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
};

}  // namespace rooflash::naive
