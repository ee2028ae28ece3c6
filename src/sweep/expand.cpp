// From axes to the problems of their product.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.hpp"
#include "core/fp8.hpp"
#include "sweep/axes.hpp"

namespace rooflash {
namespace {

constexpr std::size_t kMaxProblems = 100000;

// A mask in its simplest form, so that one problem has one case id: a window without bounds is no
// mask, one bounded by the diagonal alone is causal, and without a mask there is nothing to align.
Mask normalised(Mask mask) {
  if (mask.kind == MaskKind::window && mask.left == kUnbounded) {
    if (mask.right == kUnbounded) mask.kind = MaskKind::none;
    if (mask.right == 0) mask.kind = MaskKind::causal;
  }
  if (mask.kind != MaskKind::window) mask.left = mask.right = kUnbounded;
  if (mask.kind == MaskKind::none) mask.align = Align::bottom_right;
  return mask;
}

std::vector<Mask> masks(const Axes& axes) {
  std::vector<bool> causal = axes.causal;
  if (causal.empty()) {
    causal = axes.window ? std::vector<bool>{false} : std::vector<bool>{false, true};
  }
  std::vector<Mask> result;
  for (const bool is_causal : causal) {
    Mask mask;
    mask.align = axes.align;
    mask.kind = is_causal ? MaskKind::causal : MaskKind::none;
    if (axes.window) {
      mask.kind = MaskKind::window;
      mask.left = axes.window->first;
      mask.right = is_causal ? 0 : axes.window->second;
    }
    result.push_back(normalised(mask));
  }
  return result;
}

// (query heads, KV heads) for one head dim.
std::vector<std::pair<std::int64_t, std::int64_t>> heads(const Axes& axes, std::int64_t headdim) {
  std::vector<std::int64_t> query = axes.nheads;
  if (query.empty()) query = {std::max<std::int64_t>(1, axes.hidden_size / headdim)};
  std::vector<std::pair<std::int64_t, std::int64_t>> result;
  for (const std::int64_t hq : query) {
    for (const std::int64_t hkv : axes.nheads_kv) result.emplace_back(hq, hkv);
    if (!axes.nheads_kv.empty()) continue;
    if (hq % axes.gqa_ratio != 0) {
      throw UsageError(
          fmt::format("nheads {} is not a multiple of gqa-ratio {}", hq, axes.gqa_ratio),
          "each KV head serves the same number of query heads: change --nheads or --gqa-ratio");
    }
    result.emplace_back(hq, hq / axes.gqa_ratio);
  }
  return result;
}

// The shapes of one head dim: heads, lengths and batch. `base` holds the other axes.
std::vector<Problem> shapes(const Axes& axes, const Problem& base) {
  std::vector<Problem> result;
  for (const auto& [hq, hkv] : heads(axes, base.headdim)) {
    for (const std::int64_t kv : axes.seqlens_kv) {
      const std::vector<std::int64_t> queries =
          axes.seqlens_q.empty() ? std::vector<std::int64_t>{kv} : axes.seqlens_q;
      const std::vector<std::int64_t> batches =
          axes.batches.empty()
              ? std::vector<std::int64_t>{std::max<std::int64_t>(1, axes.total_tokens / kv)}
              : axes.batches;
      for (const std::int64_t sq : queries) {
        for (const std::int64_t batch : batches) {
          Problem p = base;
          p.heads_q = hq;
          p.heads_kv = hkv;
          p.seqlen_kv = kv;
          p.seqlen_q = sq;
          p.batch = batch;
          result.push_back(std::move(p));
        }
      }
    }
  }
  return result;
}

// Each choice of a value of every option that problems of `dtype` have.
std::vector<std::map<std::string, std::string>> options(const Axes& axes, DType dtype) {
  std::vector<std::map<std::string, std::string>> result(1);
  for (const auto& [name, values] : axes.options) {
    if (dtype != DType::e4m3 && is_fp8_option(name)) continue;
    std::vector<std::map<std::string, std::string>> longer;
    for (const auto& chosen : result) {
      for (const std::string& value : values) {
        longer.push_back(chosen);
        longer.back()[name] = value;
      }
    }
    result = std::move(longer);
  }
  return result;
}

// Everything but the shapes, in grid order.
std::vector<Problem> bases(const Axes& axes) {
  std::vector<Problem> result;
  for (const Pass pass : axes.passes) {
    for (const DType dtype : axes.dtypes) {
      for (const Headdim& headdim : axes.headdims) {
        for (const Distribution distribution : axes.distributions) {
          for (const Mask& mask : masks(axes)) {
            Problem p;
            p.pass = pass;
            p.dtype = dtype;
            p.headdim = headdim.qk;
            p.headdim_v = axes.headdim_v.value_or(headdim.v);
            p.distribution = distribution;
            p.mask = mask;
            for (auto& chosen : options(axes, dtype)) {
              p.options = std::move(chosen);
              if (dtype == DType::e4m3) drop_fp8_defaults(p);
              result.push_back(p);
            }
          }
        }
      }
    }
  }
  return result;
}

}  // namespace

std::vector<Problem> expand(const Axes& axes) {
  std::vector<Problem> problems;
  std::set<std::string> seen;
  for (const Problem& base : bases(axes)) {
    for (Problem& problem : shapes(axes, base)) {
      const std::string reason = invalid_reason(problem);
      if (!reason.empty()) {
        throw UsageError(fmt::format("{} ({})", reason, case_id("problem", problem)),
                         "change the axis flags or the suite");
      }
      if (!seen.insert(case_id("", problem)).second) continue;
      if (problems.size() == kMaxProblems) {
        throw UsageError(fmt::format("the axes give more than {} problems", kMaxProblems),
                         "shorten an axis");
      }
      problems.push_back(std::move(problem));
    }
  }
  return problems;
}
}  // namespace rooflash
