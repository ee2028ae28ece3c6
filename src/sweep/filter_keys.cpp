#include "sweep/filter_keys.hpp"

#include <fmt/format.h>

#include "core/fp8.hpp"
#include "model/gpu_spec.hpp"
#include "registry.hpp"

namespace rooflash {
namespace {

std::vector<std::string> device_names() {
  constexpr int kMaxGpus = 64;  // of one host, far more than any has
  std::vector<std::string> names;
  for (const GpuSpec& spec : gpu_specs()) names.push_back("sim:" + spec.key);
  for (int i = 0; i < kMaxGpus; ++i) names.push_back(fmt::format("cuda:{}", i));
  return names;
}

std::vector<std::string> fp8_names(std::string_view option) {
  const auto values = fp8_values(option);
  return {values.begin(), values.end()};
}

}  // namespace

std::vector<std::string> kernel_names(bool hidden) {
  std::vector<std::string> names;
  for (const Kernel* kernel : kernels()) {
    if (hidden || !kernel->hidden) names.emplace_back(kernel->name);
  }
  return names;
}

const std::vector<FilterKey>& filter_keys() {
  static const std::vector<FilterKey> table = {
      {"kernel", [](const FilterSubject& s) { return std::string(s.kernel); }},
      {"device", [](const FilterSubject& s) { return std::string(s.device); }},
      {"case", [](const FilterSubject& s) { return case_id(s.kernel, s.problem); }},
      {"pass", [](const FilterSubject& s) { return std::string(to_string(s.problem.pass)); }},
      {"dtype", [](const FilterSubject& s) { return std::string(to_string(s.problem.dtype)); }},
      {"mask", [](const FilterSubject& s) { return std::string(to_string(s.problem.mask.kind)); }},
      {"causal",
       [](const FilterSubject& s) {
         return std::string(s.problem.mask.kind == MaskKind::causal ? "true" : "false");
       }},
      {"align",
       [](const FilterSubject& s) { return std::string(to_string(s.problem.mask.align)); }},
      {"distribution",
       [](const FilterSubject& s) { return std::string(to_string(s.problem.distribution)); }},
      {"fp8-scale",
       [](const FilterSubject& s) { return std::string(fp8_value(s.problem, "scale")); }},
      {"fp8-hadamard",
       [](const FilterSubject& s) { return std::string(fp8_value(s.problem, "hadamard")); }},
      {"fp8-accum",
       [](const FilterSubject& s) { return std::string(fp8_value(s.problem, "accum")); }},
      {"fp8-max", [](const FilterSubject& s) { return std::string(fp8_value(s.problem, "max")); }},
      {"fp8-smooth",
       [](const FilterSubject& s) { return std::string(fp8_value(s.problem, "smooth")); }},
      {"fp8-out", [](const FilterSubject& s) { return std::string(fp8_value(s.problem, "out")); }},
      {"batch-size", nullptr, [](const FilterSubject& s) { return s.problem.batch; }},
      {"nheads", nullptr, [](const FilterSubject& s) { return s.problem.heads_q; }},
      {"nheads-kv", nullptr, [](const FilterSubject& s) { return s.problem.heads_kv; }},
      {"gqa-ratio", nullptr,
       [](const FilterSubject& s) { return s.problem.heads_q / s.problem.heads_kv; }},
      {"seqlen", nullptr, [](const FilterSubject& s) { return s.problem.seqlen_kv; }},
      {"seqlen-q", nullptr, [](const FilterSubject& s) { return s.problem.seqlen_q; }},
      {"headdim", nullptr, [](const FilterSubject& s) { return s.problem.headdim; }},
      {"headdim-v", nullptr, [](const FilterSubject& s) { return s.problem.headdim_v; }},
  };
  return table;
}

const std::vector<std::pair<std::string, std::vector<std::string>>>& closed_filter_values() {
  static const std::vector<std::pair<std::string, std::vector<std::string>>> table = {
      {"pass", {"fwd", "bwd"}},
      {"dtype", {"fp32", "fp16", "bf16", "e4m3"}},
      {"mask", {"none", "causal", "window"}},
      {"causal", {"true", "false"}},
      {"align", {"bottom-right", "top-left"}},
      {"distribution",
       {"normal", "outlier", "large", "negative", "constant", "biased", "biased-0.3", "peaky"}},
      {"fp8-scale", fp8_names("scale")},
      {"fp8-hadamard", fp8_names("hadamard")},
      {"fp8-accum", fp8_names("accum")},
      {"fp8-max", fp8_names("max")},
      {"fp8-smooth", fp8_names("smooth")},
      {"fp8-out", fp8_names("out")},
      {"kernel", kernel_names(true)},
      {"device", device_names()},
  };
  return table;
}

}  // namespace rooflash
