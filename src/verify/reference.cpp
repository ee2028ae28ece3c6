#include "verify/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "verify/emulation.hpp"
#include "verify/generator.hpp"
#include "verify/judge.hpp"
#include "verify/quantize.hpp"

namespace rooflash {
namespace {

// Not yet rounded.
std::vector<float> real_tensor(const Problem& p, TensorId tensor, std::uint64_t seed,
                               std::int64_t seqlen, std::int64_t heads, std::int64_t width) {
  const InputSpec spec{p.distribution, tensor, seed, static_cast<int>(p.headdim)};
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(p.batch * seqlen * heads * width));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t row = 0; row < seqlen; ++row) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t col = 0; col < width; ++col) {
          values.push_back(input_value(spec, b, h, row, col));
        }
      }
    }
  }
  return values;
}

std::vector<float> rounded_to(DType dtype, std::vector<float> values) {
  for (float& value : values) value = round_to(dtype, value);
  return values;
}

// Pointers to what one output row reads. Key j is at k + j * k_stride.
struct RowView {
  RowView(const Problem& p, const HostTensors& t, const SampledRow& row)
      : k_stride(p.heads_kv * p.headdim), v_stride(p.heads_kv * p.headdim_v) {
    const std::int64_t h_kv = row.head / (p.heads_q / p.heads_kv);
    if (t.scales.q != nullptr) {
      const std::int64_t kv_head = row.batch * p.heads_kv + h_kv;
      q_scale =
          t.scales
              .q[(row.batch * p.heads_q + row.head) * q_scale_blocks(p) + row.row / kScaleRowsQ];
      v_scale = t.scales.v[kv_head];
      k_scales = t.scales.k + kv_head * kv_scale_blocks(p);
      v_log2s = t.scales.v_log2 + kv_head * kv_scale_blocks(p);
      if (t.scales.v_mean != nullptr) v_mean = t.scales.v_mean + kv_head * p.headdim_v;
      if (output_dtype(p) == DType::e4m3) o_unit = v_scale;
    }
    q = t.q + ((row.batch * p.seqlen_q + row.row) * p.heads_q + row.head) * p.headdim;
    k = t.k + row.batch * p.seqlen_kv * k_stride + h_kv * p.headdim;
    v = t.v + row.batch * p.seqlen_kv * v_stride + h_kv * p.headdim_v;
  }
  const float* q;
  const float* k;
  const float* v;
  std::int64_t k_stride;
  std::int64_t v_stride;
  float q_scale = 1;
  float v_scale = 1;
  const float* k_scales = nullptr;  // null: all 1
  const float* v_log2s = nullptr;
  const float* v_mean = nullptr;  // null: 0
  float o_unit = 1;

  // Of q . K[j], and of V[j].
  template <class Number>
  Number score_scale(std::int64_t j) const {
    if (k_scales == nullptr) return 1;
    return static_cast<Number>(q_scale) * static_cast<Number>(k_scales[j / kScaleRowsKv]);
  }
  template <class Number>
  Number value_scale(std::int64_t j) const {
    if (v_log2s == nullptr) return 1;
    return std::ldexp(static_cast<Number>(v_scale), static_cast<int>(v_log2s[j / kScaleRowsKv]));
  }
};

// q . K[j] for the visible keys, summed in `Number`.
template <class Number>
std::vector<Number> raw_scores(const Problem& p, const RowView& view, const KeyRange& keys) {
  std::vector<Number> scores;
  for (std::int64_t j = keys.begin; j < keys.end; ++j) {
    const float* key = view.k + j * view.k_stride;
    Number dot = 0;
    for (std::int64_t d = 0; d < p.headdim; ++d) {
      dot += static_cast<Number>(view.q[d]) * static_cast<Number>(key[d]);
    }
    scores.push_back(dot * view.score_scale<Number>(j));
  }
  return scores;
}

// Sum of weights[i] V[begin + i], in `Number`.
template <class Number>
std::vector<Number> weighted_values(const Problem& p, const RowView& view, const KeyRange& keys,
                                    const std::vector<Number>& weights) {
  std::vector<Number> o(static_cast<std::size_t>(p.headdim_v), Number{0});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::int64_t j = keys.begin + static_cast<std::int64_t>(i);
    const float* value = view.v + j * view.v_stride;
    const Number weight = weights[i] * view.value_scale<Number>(j);
    for (std::size_t d = 0; d < o.size(); ++d) o[d] += weight * static_cast<Number>(value[d]);
  }
  // The weights add up to 1.
  for (std::size_t d = 0; view.v_mean != nullptr && !weights.empty() && d < o.size(); ++d) {
    o[d] += static_cast<Number>(view.v_mean[d]);
  }
  return o;
}

// Scores to weights, in place, not yet divided by their sum. Not for an empty row.
template <class Number>
struct Softmax {
  explicit Softmax(std::vector<Number>& values)
      : maximum(*std::max_element(values.begin(), values.end())) {
    for (Number& value : values) {
      value = std::exp(value - maximum);
      sum += value;
    }
  }
  Number lse() const { return maximum + std::log(sum); }

  Number maximum;
  Number sum = 0;
};

// Weights, of which none is above 1, rounded to the dtype and divided by their sum.
void round_weights(DType dtype, std::vector<float>& weights, float sum) {
  if (dtype == DType::e4m3) {
    for (float& weight : weights) {
      weight = round_to(dtype, weight * kTopWeight) / (kTopWeight * sum);
    }
  } else {
    for (float& weight : weights) weight = round_to(dtype, weight / sum);
  }
}

}  // namespace

HostTensors HostCase::tensors() {
  HostTensors t{q.data(), k.data(), v.data(), o.data(), lse.data()};
  if (!q_scale.empty()) {
    t.scales = {q_scale.data(), k_scale.data(), v_scale.data(), v_log2.data(),
                v_mean.empty() ? nullptr : v_mean.data()};
  }
  return t;
}

HostTensors HostCase::real_tensors() {
  return {real_q.data(), real_k.data(), real_v.data(), o.data(), lse.data()};
}

HostCase make_host_case(const Problem& p, std::uint64_t seed) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  HostCase c;
  c.o.assign(static_cast<std::size_t>(o_elements(p)), kNan);
  c.lse.assign(static_cast<std::size_t>(lse_elements(p)), kNan);
  std::vector<float> q = real_tensor(p, TensorId::q, seed, p.seqlen_q, p.heads_q, p.headdim);
  std::vector<float> k = real_tensor(p, TensorId::k, seed, p.seqlen_kv, p.heads_kv, p.headdim);
  std::vector<float> v = real_tensor(p, TensorId::v, seed, p.seqlen_kv, p.heads_kv, p.headdim_v);
  if (p.dtype != DType::e4m3) {
    c.q = rounded_to(p.dtype, std::move(q));
    c.k = rounded_to(p.dtype, std::move(k));
    c.v = rounded_to(p.dtype, std::move(v));
    return c;
  }
  for (auto* values : {&q, &k, &v}) *values = rounded_to(DType::bf16, std::move(*values));
  c.real_q = std::move(q);
  c.real_k = std::move(k);
  c.real_v = std::move(v);
  quantize_case(p, c);
  return c;
}

void quantize_case(const Problem& p, HostCase& host) {
  QuantizedInputs quantized = quantize(p, host.real_q, host.real_k, host.real_v);
  host.q = std::move(quantized.q);
  host.k = std::move(quantized.k);
  host.v = std::move(quantized.v);
  host.q_scale = std::move(quantized.q_scale);
  host.k_scale = std::move(quantized.k_scale);
  host.v_scale = std::move(quantized.v_scale);
  host.v_log2 = std::move(quantized.v_log2);
  host.v_mean = std::move(quantized.v_mean);
}

ReferenceRow reference_row(const Problem& p, const HostTensors& t, const SampledRow& row) {
  const RowView view(p, t, row);
  const KeyRange keys = visible_keys(p, row.row);
  std::vector<double> weights = raw_scores<double>(p, view, keys);
  ReferenceRow result;
  result.lse = -std::numeric_limits<double>::infinity();
  if (!weights.empty()) {
    for (double& score : weights) score *= softmax_scale(p);
    const Softmax<double> softmax(weights);
    result.lse = softmax.lse();
    for (double& weight : weights) weight /= softmax.sum;
  }
  result.o = weighted_values(p, view, keys, weights);
  return result;
}

EmulatedRow emulated_row(const Problem& p, const HostTensors& t, const SampledRow& row) {
  const RowView view(p, t, row);
  const KeyRange keys = visible_keys(p, row.row);
  std::vector<float> weights = raw_scores<float>(p, view, keys);
  EmulatedRow result;
  result.lse = -std::numeric_limits<float>::infinity();
  if (!weights.empty()) {
    const auto scale = static_cast<float>(softmax_scale(p));
    for (float& score : weights) {
      score *= scale;
      const float rounded = round_to(p.dtype == DType::e4m3 ? DType::bf16 : p.dtype, score);
      if (std::isfinite(rounded)) score = rounded;
    }
    const Softmax<float> softmax(weights);
    result.lse = softmax.lse();
    round_weights(p.dtype, weights, softmax.sum);
  }
  result.o = weighted_values(p, view, keys, weights);
  for (float& value : result.o) {
    value = round_to(output_dtype(p), value / view.o_unit) * view.o_unit;
  }
  return result;
}

VerifyResult verify_on_host(const Problem& p, const HostTensors& t, std::int64_t max_rows,
                            std::uint64_t seed, const HostTensors* real) {
  Judge judge(p);
  const RowSample sample = sample_rows(p, max_rows, seed);
  for (const SampledRow& row : sample.rows) {
    const ReferenceRow reference = reference_row(p, t, row);
    const EmulatedRow emulated = emulated_row(p, t, row);
    const float* o =
        t.o + ((row.batch * p.seqlen_q + row.row) * p.heads_q + row.head) * p.headdim_v;
    const float unit = RowView(p, t, row).o_unit;
    std::vector<float> actual(o, o + p.headdim_v);
    for (float& value : actual) value *= unit;
    const float lse = t.lse[(row.batch * p.heads_q + row.head) * p.seqlen_q + row.row];
    judge.add_row(row, actual, reference.o, emulated.o, lse, reference.lse, emulated.lse);
    if (real != nullptr && std::isfinite(reference.lse)) {
      judge.add_unquantized_row(actual, reference_row(p, *real, row).o);
    }
  }
  judge.add_nonfinite(
      std::count_if(t.o, t.o + o_elements(p), [](float value) { return !std::isfinite(value); }),
      "O");
  return judge.result(sample);
}

}  // namespace rooflash
