#include "verify/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/generator.hpp"
#include "verify/judge.hpp"

namespace rooflash {
namespace {

std::vector<float> make_tensor(const Problem& p, TensorId tensor, std::uint64_t seed,
                               std::int64_t seqlen, std::int64_t heads, std::int64_t width) {
  const InputSpec spec{p.distribution, tensor, seed, static_cast<int>(p.headdim)};
  std::vector<float> values;
  values.reserve(static_cast<std::size_t>(p.batch * seqlen * heads * width));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t row = 0; row < seqlen; ++row) {
      for (std::int64_t h = 0; h < heads; ++h) {
        for (std::int64_t col = 0; col < width; ++col) {
          values.push_back(round_to(p.dtype, input_value(spec, b, h, row, col)));
        }
      }
    }
  }
  return values;
}

// Pointers to what one output row reads. Key j is at k + j * k_stride.
struct RowView {
  RowView(const Problem& p, const HostTensors& t, const SampledRow& row)
      : k_stride(p.heads_kv * p.headdim), v_stride(p.heads_kv * p.headdim_v) {
    const std::int64_t h_kv = row.head / (p.heads_q / p.heads_kv);
    q = t.q + ((row.batch * p.seqlen_q + row.row) * p.heads_q + row.head) * p.headdim;
    k = t.k + row.batch * p.seqlen_kv * k_stride + h_kv * p.headdim;
    v = t.v + row.batch * p.seqlen_kv * v_stride + h_kv * p.headdim_v;
  }
  const float* q;
  const float* k;
  const float* v;
  std::int64_t k_stride;
  std::int64_t v_stride;
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
    scores.push_back(dot);
  }
  return scores;
}

// Sum of weights[i] V[begin + i], in `Number`.
template <class Number>
std::vector<Number> weighted_values(const Problem& p, const RowView& view, const KeyRange& keys,
                                    const std::vector<Number>& weights) {
  std::vector<Number> o(static_cast<std::size_t>(p.headdim_v), Number{0});
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const float* value = view.v + (keys.begin + static_cast<std::int64_t>(i)) * view.v_stride;
    for (std::size_t d = 0; d < o.size(); ++d) o[d] += weights[i] * static_cast<Number>(value[d]);
  }
  return o;
}

// Scores to weights, in place; gives LSE. Not for an empty row.
template <class Number>
Number softmax(std::vector<Number>& values) {
  const Number maximum = *std::max_element(values.begin(), values.end());
  Number sum = 0;
  for (Number& value : values) {
    value = std::exp(value - maximum);
    sum += value;
  }
  for (Number& value : values) value /= sum;
  return maximum + std::log(sum);
}

}  // namespace

HostTensors HostCase::tensors() {
  return {q.data(), k.data(), v.data(), o.data(), lse.data()};
}

HostCase make_host_case(const Problem& p, std::uint64_t seed) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  return {make_tensor(p, TensorId::q, seed, p.seqlen_q, p.heads_q, p.headdim),
          make_tensor(p, TensorId::k, seed, p.seqlen_kv, p.heads_kv, p.headdim),
          make_tensor(p, TensorId::v, seed, p.seqlen_kv, p.heads_kv, p.headdim_v),
          std::vector<float>(static_cast<std::size_t>(o_elements(p)), kNan),
          std::vector<float>(static_cast<std::size_t>(lse_elements(p)), kNan)};
}

ReferenceRow reference_row(const Problem& p, const HostTensors& t, const SampledRow& row) {
  const RowView view(p, t, row);
  const KeyRange keys = visible_keys(p, row.row);
  std::vector<double> weights = raw_scores<double>(p, view, keys);
  ReferenceRow result;
  result.lse = -std::numeric_limits<double>::infinity();
  if (!weights.empty()) {
    for (double& score : weights) score *= softmax_scale(p);
    result.lse = softmax(weights);
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
      const float rounded = round_to(p.dtype, score);
      if (std::isfinite(rounded)) score = rounded;
    }
    result.lse = softmax(weights);
    for (float& weight : weights) weight = round_to(p.dtype, weight);
  }
  result.o = weighted_values(p, view, keys, weights);
  for (float& value : result.o) value = round_to(output_dtype(p.dtype), value);
  return result;
}

VerifyResult verify_on_host(const Problem& p, const HostTensors& t, std::int64_t max_rows,
                            std::uint64_t seed) {
  Judge judge(p);
  const RowSample sample = sample_rows(p, max_rows, seed);
  for (const SampledRow& row : sample.rows) {
    const ReferenceRow reference = reference_row(p, t, row);
    const EmulatedRow emulated = emulated_row(p, t, row);
    const float* o =
        t.o + ((row.batch * p.seqlen_q + row.row) * p.heads_q + row.head) * p.headdim_v;
    const float lse = t.lse[(row.batch * p.heads_q + row.head) * p.seqlen_q + row.row];
    judge.add_row(row, {o, static_cast<std::size_t>(p.headdim_v)}, reference.o, emulated.o, lse,
                  reference.lse, emulated.lse);
  }
  judge.add_nonfinite(
      std::count_if(t.o, t.o + o_elements(p), [](float value) { return !std::isfinite(value); }),
      "O");
  return judge.result(sample);
}

}  // namespace rooflash
