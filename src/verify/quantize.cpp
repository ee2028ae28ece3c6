#include "verify/quantize.hpp"

#include <algorithm>

namespace rooflash {
namespace {

// Of a [batch, seqlen, heads, width] tensor.
struct Shape {
  std::int64_t batch, seqlen, heads, width;
  std::int64_t block_rows;  // that share a scale

  std::int64_t blocks() const { return (seqlen + block_rows - 1) / block_rows; }
  std::int64_t scales() const { return batch * heads * blocks(); }
};

// Calls `visit(scale index, row's first element)` for all rows of all heads.
template <class Visit>
void for_rows(const Shape& shape, Visit visit) {
  for (std::int64_t b = 0; b < shape.batch; ++b) {
    for (std::int64_t row = 0; row < shape.seqlen; ++row) {
      for (std::int64_t h = 0; h < shape.heads; ++h) {
        visit(static_cast<std::size_t>((b * shape.heads + h) * shape.blocks() +
                                       row / shape.block_rows),
              static_cast<std::size_t>(((b * shape.seqlen + row) * shape.heads + h) * shape.width));
      }
    }
  }
}

// Greatest magnitude of each block.
std::vector<float> largest_of_blocks(const Shape& shape, const std::vector<float>& values) {
  std::vector<float> largest(static_cast<std::size_t>(shape.scales()), 0.0F);
  for_rows(shape, [&](std::size_t scale, std::size_t first) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape.width); ++c) {
      largest[scale] = std::max(largest[scale], std::fabs(values[first + c]));
    }
  });
  return largest;
}

// What the blocks that share a scale have in common.
void widen(std::vector<float>& largest, std::size_t blocks_of_head, ScaleSpan span) {
  if (span == ScaleSpan::block) return;
  const std::size_t share = span == ScaleSpan::head ? blocks_of_head : largest.size();
  for (auto first = largest.begin(); first != largest.end();) {
    const auto end = first + static_cast<std::ptrdiff_t>(share);
    std::fill(first, end, *std::max_element(first, end));
    first = end;
  }
}

std::vector<float> rotated(const Shape& shape, std::vector<float> values) {
  const float factor = fp8::hadamard_factor(shape.width);
  std::vector<float> before(static_cast<std::size_t>(shape.width));
  for_rows(shape, [&](std::size_t, std::size_t first) {
    float* row = values.data() + first;
    for (std::int64_t c = 0; c < shape.width; ++c) row[c] *= fp8::sign_of(c);
    for (std::int64_t half = 1; half < shape.width; half *= 2) {
      std::copy(row, row + shape.width, before.begin());
      for (std::int64_t c = 0; c < shape.width; ++c) {
        row[c] = fp8::butterfly(before[static_cast<std::size_t>(c)],
                                before[static_cast<std::size_t>(c ^ half)], (c & half) != 0);
      }
    }
    for (std::int64_t c = 0; c < shape.width; ++c) row[c] *= factor;
  });
  return values;
}

// [batch, heads, width]: over the rows of a head, each block summed up by itself first.
std::vector<float> means_of_heads(const Shape& shape, const std::vector<float>& values) {
  const auto width = static_cast<std::size_t>(shape.width);
  const auto blocks = static_cast<std::size_t>(shape.blocks());
  std::vector<float> sums(static_cast<std::size_t>(shape.scales()) * width, 0.0F);
  for_rows(shape, [&](std::size_t block, std::size_t first) {
    for (std::size_t c = 0; c < width; ++c) sums[block * width + c] += values[first + c];
  });
  std::vector<float> means(sums.size() / blocks, 0.0F);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    means[i / (blocks * width) * width + i % width] += sums[i];
  }
  for (float& mean : means) mean /= static_cast<float>(shape.seqlen);
  return means;
}

// Q or K, with its scales.
void quantize_rows(const Shape& shape, const Fp8Modes& modes, std::vector<float> values,
                   std::vector<float>& quantized, std::vector<float>& scales) {
  if (modes.hadamard) values = rotated(shape, std::move(values));
  scales = largest_of_blocks(shape, values);
  widen(scales, static_cast<std::size_t>(shape.blocks()), modes.scale);
  for (float& scale : scales) scale = fp8::scale_of(scale);
  for_rows(shape, [&](std::size_t scale, std::size_t first) {
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape.width); ++c) {
      values[first + c] = round_to(DType::e4m3, values[first + c] / scales[scale]);
    }
  });
  quantized = std::move(values);
}

void quantize_values(const Shape& shape, const Fp8Modes& modes, std::vector<float> values,
                     QuantizedInputs& result) {
  const auto blocks = static_cast<std::size_t>(shape.blocks());
  if (modes.smooth_values) {
    result.v_mean = means_of_heads(shape, values);
    const auto width = static_cast<std::size_t>(shape.width);
    for_rows(shape, [&](std::size_t scale, std::size_t first) {
      const float* const mean = result.v_mean.data() + scale / blocks * width;
      for (std::size_t c = 0; c < width; ++c) values[first + c] -= mean[c];
    });
  }
  const std::vector<float> of_blocks = largest_of_blocks(shape, values);
  std::vector<float> of_heads = of_blocks;
  widen(of_heads, blocks, modes.scale == ScaleSpan::tensor ? ScaleSpan::tensor : ScaleSpan::head);
  for (std::size_t i = 0; i < of_blocks.size(); ++i) {
    result.v_log2.push_back(
        modes.scale == ScaleSpan::block ? fp8::block_log2(of_blocks[i], of_heads[i]) : 0.0F);
    if (i % blocks == 0) result.v_scale.push_back(fp8::scale_of(of_heads[i]));
  }
  for_rows(shape, [&](std::size_t scale, std::size_t first) {
    const float unit =
        std::ldexp(result.v_scale[scale / blocks], static_cast<int>(result.v_log2[scale]));
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape.width); ++c) {
      values[first + c] = round_to(DType::e4m3, values[first + c] / unit);
    }
  });
  result.v = std::move(values);
}

}  // namespace

QuantizedInputs quantize(const Problem& p, const std::vector<float>& q, const std::vector<float>& k,
                         const std::vector<float>& v) {
  const Fp8Modes modes = fp8_modes(p);
  QuantizedInputs result;
  quantize_rows({p.batch, p.seqlen_q, p.heads_q, p.headdim, kScaleRowsQ}, modes, q, result.q,
                result.q_scale);
  quantize_rows({p.batch, p.seqlen_kv, p.heads_kv, p.headdim, kScaleRowsKv}, modes, k, result.k,
                result.k_scale);
  quantize_values({p.batch, p.seqlen_kv, p.heads_kv, p.headdim_v, kScaleRowsKv}, modes, v, result);
  return result;
}

}  // namespace rooflash
