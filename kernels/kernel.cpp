#include "kernel.hpp"

#include <algorithm>

#include "core/fp8.hpp"

namespace rooflash {
namespace {

unsigned mask_bit(const Mask& mask) {
  if (mask.kind == MaskKind::none) return kMaskNone;
  if (mask.kind == MaskKind::window) return kMaskWindow;
  return mask.align == Align::bottom_right ? kMaskCausal : kMaskCausalTopLeft;
}

template <class Values>
std::string join(const Values& values) {
  std::string text;
  for (const auto& value : values) {
    if (!text.empty()) text += ", ";
    text += value;
  }
  return text;
}

// Values of one field over the variants, each once, in table order.
template <class Field>
std::vector<std::string> distinct(const Kernel& kernel, Field field) {
  std::vector<std::string> values;
  for (const Variant& variant : kernel.variants) {
    const std::string value(field(variant));
    if (std::find(values.begin(), values.end(), value) == values.end()) values.push_back(value);
  }
  return values;
}

}  // namespace

Scales place_scales(const Problem& p, const float* memory) {
  if (scale_elements(p) == 0) return {};
  Scales scales;
  const std::int64_t means = v_mean_elements(p);
  scales.v_mean = means > 0 ? memory : nullptr;
  scales.q = memory + means;
  scales.k = scales.q + p.batch * p.heads_q * q_scale_blocks(p);
  scales.v_log2 = scales.k + p.batch * p.heads_kv * kv_scale_blocks(p);
  scales.v = scales.v_log2 + p.batch * p.heads_kv * kv_scale_blocks(p);
  return scales;
}

std::string no_model(const Kernel& kernel) {
  if (kernel.traffic != nullptr) return {};
  return "the kernels of " + std::string(kernel.provider) +
         " are closed: there is no model of them";
}

std::string sm_range(const Variant& variant) {
  const std::string from = "sm_" + std::to_string(variant.sm_min);
  return variant.sm_max >= 999 ? from + "+" : from + "-" + std::to_string(variant.sm_max);
}

std::string mask_names(unsigned masks) {
  std::vector<std::string> names;
  if ((masks & kMaskNone) != 0) names.emplace_back("none");
  if ((masks & kMaskCausal) != 0) names.emplace_back("causal");
  if ((masks & kMaskCausalTopLeft) != 0) names.emplace_back("causal top-left");
  if ((masks & kMaskWindow) != 0) names.emplace_back("window");
  return join(names);
}

const Variant* find_variant(const Kernel& kernel, const Problem& problem, int sm,
                            std::string* reason) {
  std::vector<const Variant*> left;
  for (const Variant& variant : kernel.variants) left.push_back(&variant);
  const std::string name(kernel.name);
  // Narrows by one property at a time, so that the reason names the first one that nothing serves.
  const auto narrow = [&](const std::string& asked, const auto& serves, const auto& label) {
    std::vector<const Variant*> kept;
    std::copy_if(left.begin(), left.end(), std::back_inserter(kept),
                 [&](const Variant* v) { return serves(*v); });
    if (kept.empty() && reason != nullptr) {
      *reason = name + " has no " + asked + "; compiled: " + join(distinct(kernel, label));
    }
    left = std::move(kept);
    return !left.empty();
  };
  const unsigned mask = mask_bit(problem.mask);
  const std::int64_t width = std::max(problem.headdim, problem.headdim_v);
  const bool found =
      narrow(
          std::string(to_string(problem.pass)) + " pass",
          [&](const Variant& v) { return v.pass == problem.pass; },
          [](const Variant& v) { return to_string(v.pass); }) &&
      narrow(
          std::string(to_string(problem.dtype)) + " variant",
          [&](const Variant& v) { return v.dtype == problem.dtype; },
          [](const Variant& v) { return to_string(v.dtype); }) &&
      narrow(
          mask_names(mask) + " mask", [&](const Variant& v) { return (v.masks & mask) != 0; },
          [](const Variant& v) { return mask_names(v.masks); }) &&
      narrow(
          "head dim " + std::to_string(width), [&](const Variant& v) { return v.headdim >= width; },
          [](const Variant& v) { return "up to " + std::to_string(v.headdim); }) &&
      narrow(
          "variant for sm_" + std::to_string(sm),
          [&](const Variant& v) { return sm == 0 || (v.sm_min <= sm && sm <= v.sm_max); },
          [](const Variant& v) { return sm_range(v); });
  if (!found) return nullptr;
  for (const auto& [option, value] : problem.options) {
    if (std::find(kernel.options.begin(), kernel.options.end(), option) != kernel.options.end()) {
      continue;
    }
    if (reason != nullptr) (*reason = name).append(" has no option ").append(option);
    return nullptr;
  }
  std::string limit = unusable_modes(problem);
  if (limit.empty() && kernel.limits != nullptr) limit = kernel.limits(problem);
  if (!limit.empty()) {
    if (reason != nullptr) *reason = limit;
    return nullptr;
  }
  return *std::min_element(left.begin(), left.end(), [](const Variant* a, const Variant* b) {
    return a->headdim < b->headdim;
  });
}

}  // namespace rooflash
