// One NaN or infinity in an input: it reaches exactly the rows that see it, and no such output
// passes the judge.
#include <bit>
#include <cmath>
#include <limits>

#include "device_case.hpp"
#include "harness.hpp"
#include "verify/generator.hpp"

namespace rooflash {
namespace {

// An input element. `head` is a KV head for K and V.
struct Place {
  TensorId tensor;
  std::int64_t batch, row, head, col;
};

float& element(HostCase& host, const Problem& p, const Place& at) {
  const auto index = [&](std::int64_t seqlen, std::int64_t heads, std::int64_t width) {
    return static_cast<std::size_t>(((at.batch * seqlen + at.row) * heads + at.head) * width +
                                    at.col);
  };
  if (at.tensor == TensorId::q) return host.q[index(p.seqlen_q, p.heads_q, p.headdim)];
  if (at.tensor == TensorId::k) return host.k[index(p.seqlen_kv, p.heads_kv, p.headdim)];
  return host.v[index(p.seqlen_kv, p.heads_kv, p.headdim_v)];
}

bool same_bits(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

// Compares a run on inputs with one bad element with a run on the clean ones.
class Comparison {
 public:
  Comparison(const Problem& problem, const Place& bad, const HostCase& clean, HostCase& host)
      : p_(problem), bad_(bad), clean_(clean), host_(host) {}

  // The first row that is wrong, "" where none is.
  std::string fault() {
    for (const SampledRow& row : sample_rows(p_, o_elements(p_), kSeed).rows) {
      const bool right = sees(row) ? seeing_row_is_right(row) : other_row_is_right(row);
      if (!right) {
        return "batch " + std::to_string(row.batch) + " head " + std::to_string(row.head) +
               " row " + std::to_string(row.row) +
               (sees(row) ? ", which sees it" : ", which does not see it");
      }
    }
    return {};
  }

 private:
  bool same_heads(const SampledRow& row) const {
    const std::int64_t head =
        bad_.tensor == TensorId::q ? row.head : row.head / (p_.heads_q / p_.heads_kv);
    return row.batch == bad_.batch && head == bad_.head;
  }
  bool sees(const SampledRow& row) const {
    if (!same_heads(row)) return false;
    if (bad_.tensor == TensorId::q) return row.row == bad_.row;
    const KeyRange keys = visible_keys(p_, row.row);
    return keys.begin <= bad_.row && bad_.row < keys.end;
  }
  std::size_t o_index(const SampledRow& row) const {
    return static_cast<std::size_t>(((row.batch * p_.seqlen_q + row.row) * p_.heads_q + row.head) *
                                    p_.headdim_v);
  }
  std::size_t lse_index(const SampledRow& row) const {
    return static_cast<std::size_t>((row.batch * p_.heads_q + row.head) * p_.seqlen_q + row.row);
  }

  bool is_same(float value, float clean) const {
    if (p_.dtype != DType::e4m3) return same_bits(value, clean);
    return std::fabs(value - clean) <= 0.05F * (1 + std::fabs(clean));
  }

  // Finite exactly where the reference is: a score of -inf, for one, is a weight of 0.
  bool seeing_row_is_right(const SampledRow& row) {
    const ReferenceRow reference = reference_row(p_, host_.tensors(), row);
    bool right = std::isfinite(host_.lse[lse_index(row)]) == std::isfinite(reference.lse);
    for (std::size_t c = 0; c < reference.o.size(); ++c) {
      right = right && std::isfinite(host_.o[o_index(row) + c]) == std::isfinite(reference.o[c]);
    }
    return right;
  }

  // The same bits as without the bad element; with e4m3 nearly the same, since a row that outgrows
  // its reference takes its neighbours with it. One exception: a hidden V row has weight 0, and
  // 0 x NaN is NaN, so its column may be NaN in the other rows of its heads, as in eager code.
  bool other_row_is_right(const SampledRow& row) const {
    bool right = is_same(host_.lse[lse_index(row)], clean_.lse[lse_index(row)]);
    for (std::size_t c = 0; c < static_cast<std::size_t>(p_.headdim_v); ++c) {
      const float value = host_.o[o_index(row) + c];
      const bool hidden_value =
          bad_.tensor == TensorId::v && same_heads(row) && c == static_cast<std::size_t>(bad_.col);
      right = right &&
              (is_same(value, clean_.o[o_index(row) + c]) || (hidden_value && std::isnan(value)));
    }
    return right;
  }

  const Problem& p_;
  const Place& bad_;
  const HostCase& clean_;
  HostCase& host_;
};

TEST_P(Kernels, NonfiniteInputsReachTheRowsThatSeeThem) {
  const KernelVariant& kernel = GetParam();
  Problem p = kernel.problem();
  p.batch = 2;
  p.heads_q = 4;
  p.heads_kv = 2;
  p.seqlen_q = 150;
  p.seqlen_kv = 200;
  for (const Mask& mask : kernel.masks(p, 0)) {
    p.mask = mask;
    SCOPED_TRACE(case_id(kernel.kernel->name, p));
    DeviceCase device(kernel.kernel, p);
    HostCase clean = make_host_case(p, kSeed);
    device.upload_inputs(clean);
    device.run();
    device.download_outputs(clean);
    // Query 70 and key 110 see and are seen under every mask, and lie inside tiles.
    for (const Place& place : {Place{TensorId::q, 1, 70, 1, 5}, Place{TensorId::k, 1, 110, 1, 3},
                               Place{TensorId::v, 1, 110, 1, 9}}) {
      for (const float bad :
           {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
            -std::numeric_limits<float>::infinity()}) {
        if (p.dtype == DType::e4m3 && std::isinf(bad)) continue;  // e4m3 has no infinity
        HostCase host = clean;
        element(host, p, place) = bad;
        device.upload_inputs(host);
        device.run();
        device.download_outputs(host);
        SCOPED_TRACE("bad element in tensor " + std::to_string(static_cast<int>(place.tensor)) +
                     ", " + std::to_string(bad));
        EXPECT_EQ(Comparison(p, place, clean, host).fault(), "");
        EXPECT_FALSE(passed(verify_on_host(p, host.tensors(), 16, kSeed)));
      }
    }
  }
}

}  // namespace
}  // namespace rooflash
