// Families that misbehave on purpose (`list --hidden`). Each is right attention, one row at a time,
// and one fault.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <thread>
#include <vector>

#include "common/host_math.hpp"
#include "common/two_level_memory.hpp"
#include "variants.hpp"

namespace rooflash {
namespace {

// Sizes of the SRAM tiles: one row of Q or O, one of K or V.
Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  const std::int64_t width = std::max(p.headdim, p.headdim_v);
  return fit_tile({1, 1}, sram_bytes, [&](Tile) { return 3 * width * size_bytes(p.dtype); });
}

// O times `factor`.
void attention(const Problem& p, const HostTensors& t, TwoLevelMemory& memory, float factor) {
  const std::int64_t bytes = size_bytes(p.dtype);
  SramTile q(memory, 1, p.headdim, bytes);
  SramTile k(memory, 1, p.headdim, bytes);
  SramTile v(memory, 1, p.headdim_v, bytes);
  SramTile o(memory, 1, p.headdim_v, kInRegisters);
  SramTile score(memory, 1, 1, kInRegisters);
  const auto scale = static_cast<float>(softmax_scale(p));
  const std::int64_t rows = p.batch * p.seqlen_q * p.heads_q;
  for (std::int64_t index = 0; index < rows; ++index) {
    const std::int64_t h = index % p.heads_q;
    const std::int64_t row = index / p.heads_q % p.seqlen_q;
    const std::int64_t b = index / p.heads_q / p.seqlen_q;
    const std::int64_t h_kv = h / (p.heads_q / p.heads_kv);
    memory.load(q, t.q + index * p.headdim, 1, p.headdim, p.headdim, p.dtype);
    o.fill(0.0F);
    float maximum = -std::numeric_limits<float>::infinity();
    float sum = 0.0F;
    const KeyRange keys = visible_keys(p, row);
    for (std::int64_t j = keys.begin; j < keys.end; ++j) {
      memory.load(k, t.k + row_offset(b, j, h_kv, p.seqlen_kv, p.heads_kv, p.headdim), 1, p.headdim,
                  p.headdim, p.dtype);
      memory.load(v, t.v + row_offset(b, j, h_kv, p.seqlen_kv, p.heads_kv, p.headdim_v), 1,
                  p.headdim_v, p.headdim_v, p.dtype);
      score.fill(0.0F);
      add_product_transposed(score, q, k);
      const float s = score.at(0, 0) * scale;
      const float new_maximum = std::max(maximum, s);
      const float rescale = std::exp(maximum - new_maximum);
      const float weight = std::exp(s - new_maximum);
      maximum = new_maximum;
      sum = sum * rescale + weight;
      for (std::int64_t c = 0; c < p.headdim_v; ++c) {
        o.at(0, c) = o.at(0, c) * rescale + weight * v.at(0, c);
      }
    }
    const float inverse = sum == 0.0F ? 0.0F : factor / sum;
    for (std::int64_t c = 0; c < p.headdim_v; ++c) o.at(0, c) *= inverse;
    score.at(0, 0) = maximum + std::log(sum);
    memory.store(o, t.o + index * p.headdim_v, 1, p.headdim_v, p.headdim_v, output_dtype(p));
    memory.store(score, t.lse + (b * p.heads_q + h) * p.seqlen_q + row, 1, 1, 1, DType::fp32);
  }
}

Traffic traffic(const Problem& p, Tile) {
  const std::int64_t heads = p.batch * p.heads_q;
  std::int64_t pairs = 0;
  for (std::int64_t row = 0; row < p.seqlen_q; ++row) {
    const KeyRange keys = visible_keys(p, row);
    pairs += keys.end - keys.begin;
  }
  const std::int64_t bytes = size_bytes(p.dtype);
  const std::int64_t sharing = p.seqlen_q * (p.heads_q / p.heads_kv);
  Traffic result;
  result.streams = {
      read_stream("q", q_elements(p) * bytes, q_elements(p) * bytes, 1),
      read_stream("k", k_elements(p) * bytes, heads * pairs * p.headdim * bytes, sharing),
      read_stream("v", v_elements(p) * bytes, heads * pairs * p.headdim_v * bytes, sharing),
      write_stream("o", o_elements(p) * size_bytes(output_dtype(p))),
      write_stream("lse", lse_elements(p) * 4),
  };
  Stage rows;
  rows.name = "rows";
  rows.sm_l2_bytes = static_cast<double>(result.read_bytes() + result.write_bytes());
  rows.exp_ops = 2.0 * static_cast<double>(heads * pairs);
  rows.tiles = static_cast<double>(heads * p.seqlen_q);
  result.stages = {rows};
  return result;
}

using Host = void (*)(const Problem&, const HostTensors&, Tile, TwoLevelMemory&);

constexpr Kernel hidden_kernel(std::string_view name, std::string_view summary, Host host) {
  Kernel kernel;
  kernel.name = name;
  kernel.summary = summary;
  kernel.source = "test family";
  kernel.variants = hidden::kVariants;
  kernel.tile = choose_tile;
  kernel.host = host;
  kernel.traffic = traffic;
  kernel.hidden = true;
  return kernel;
}

void wrong(const Problem& p, const HostTensors& t, Tile, TwoLevelMemory& memory) {
  attention(p, t, memory, 1.01F);
}

void one_nan(const Problem& p, const HostTensors& t, Tile, TwoLevelMemory& memory) {
  attention(p, t, memory, 1.0F);
  t.o[o_elements(p) / 2] = std::numeric_limits<float>::quiet_NaN();
}

void no_operation(const Problem&, const HostTensors&, Tile, TwoLevelMemory&) {}

void crash(const Problem&, const HostTensors&, Tile, TwoLevelMemory&) {
  // The default action, also where a sanitizer has installed a handler.
  std::signal(SIGSEGV, SIG_DFL);
  std::raise(SIGSEGV);
}

void hang(const Problem&, const HostTensors&, Tile, TwoLevelMemory&) {
  for (;;) std::this_thread::sleep_for(std::chrono::hours(1));
}

void illegal(const Problem&, const HostTensors&, Tile, TwoLevelMemory&) {
  std::abort();
}

void slow(const Problem& p, const HostTensors& t, Tile, TwoLevelMemory& memory) {
  attention(p, t, memory, 1.0F);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

}  // namespace

#define ROOFLASH_HIDDEN(family, summary, host)                  \
  namespace family {                                            \
  extern const Kernel kKernel;                                  \
  const Kernel kKernel = hidden_kernel(#family, summary, host); \
  }

ROOFLASH_HIDDEN(test_wrong, "O is one per cent too large", wrong)
ROOFLASH_HIDDEN(test_nan, "one NaN in O", one_nan)
ROOFLASH_HIDDEN(test_noop, "writes nothing", no_operation)
ROOFLASH_HIDDEN(test_crash, "crashes with SIGSEGV", crash)
ROOFLASH_HIDDEN(test_hang, "never returns", hang)
ROOFLASH_HIDDEN(test_illegal, "illegal access; simulated: aborts", illegal)
ROOFLASH_HIDDEN(test_slow, "sleeps 0.3 s a case", slow)

}  // namespace rooflash
