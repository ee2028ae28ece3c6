// The axes of a sweep and their product.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem.hpp"

namespace rooflash {

struct Headdim {
  std::int64_t qk = 128;
  std::int64_t v = 128;
  bool operator==(const Headdim&) const = default;
};

// The defaults are the sweep of `rooflash run` with no axis flag.
struct Axes {
  std::vector<std::string> kernels;  // elements of --kernel ("fa2", "^naive"); empty: all
  std::vector<Pass> passes = {Pass::fwd};
  std::vector<DType> dtypes = {DType::bf16};
  std::vector<Headdim> headdims = {Headdim{}};
  std::optional<std::int64_t> headdim_v;  // replaces every v of `headdims`
  std::vector<std::int64_t> seqlens_kv = {512, 1024, 2048, 4096, 8192, 16384};
  std::vector<std::int64_t> seqlens_q;  // empty: as seqlen_kv
  std::vector<std::int64_t> batches;    // empty: total_tokens / seqlen_kv, at least 1
  std::int64_t total_tokens = 16384;
  std::vector<std::int64_t> nheads;  // empty: hidden_size / headdim, at least 1
  std::int64_t hidden_size = 2048;
  std::vector<std::int64_t> nheads_kv;  // empty: nheads / gqa_ratio
  std::int64_t gqa_ratio = 1;
  std::vector<bool> causal;  // empty: full and causal; with a window, the window alone
  Align align = Align::bottom_right;
  std::optional<std::pair<std::int64_t, std::int64_t>> window;  // left, right; kUnbounded: no limit
  std::vector<Distribution> distributions = {Distribution::normal};
  // Values of each option. Those of e4m3 (core/fp8.hpp) are for problems of that type alone.
  std::map<std::string, std::vector<std::string>> options;
  std::vector<std::string> devices;  // empty: the command's default
};

// Axis names as in flags and suites, without dashes: kernel, pass, dtype, headdim, headdim-v,
// seqlen, seqlen-q, batch-size, total-tokens, nheads, hidden-size, nheads-kv, gqa-ratio, causal,
// align, window, distribution, fp8-scale, fp8-hadamard, fp8-accum, fp8-max, fp8-smooth, fp8-out,
// option, device.
const std::vector<std::string>& axis_names();

// Sets one axis from its text ("512,1k", "64,192-128", "both", "255,0", "scale=block"). `flag` is
// how messages name it ("--seqlen", "mine.json:4: seqlen"). Throws UsageError.
void set_axis(Axes& axes, std::string_view name, std::string_view text, std::string_view flag);

// Every problem of the grid once, in grid order (pass, dtype, headdim, mask, seqlen, ...). Throws
// UsageError where a combination makes no sense (nheads 33 with nheads-kv 2).
std::vector<Problem> expand(const Axes& axes);

}  // namespace rooflash
