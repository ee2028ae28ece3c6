#include "sweep/repro.hpp"

#include <fmt/format.h>

#include "core/shell.hpp"

namespace rooflash {
namespace {

std::string side(std::int64_t bound) {
  return bound == kUnbounded ? "inf" : fmt::format("{}", bound);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> case_axes(std::string_view kernel,
                                                           const Problem& p) {
  std::vector<std::pair<std::string, std::string>> axes = {
      {"kernel", std::string(kernel)},
      {"pass", std::string(to_string(p.pass))},
      {"dtype", std::string(to_string(p.dtype))},
      {"batch-size", fmt::format("{}", p.batch)},
      {"nheads", fmt::format("{}", p.heads_q)},
      {"nheads-kv", fmt::format("{}", p.heads_kv)},
      {"seqlen", fmt::format("{}", p.seqlen_kv)},
      {"seqlen-q", fmt::format("{}", p.seqlen_q)},
      {"headdim", fmt::format("{}", p.headdim)},
      {"headdim-v", fmt::format("{}", p.headdim_v)},
      {"causal", fmt::format("{}", p.mask.kind == MaskKind::causal)},
      {"align", std::string(to_string(p.mask.align))}};
  if (p.mask.kind == MaskKind::window) {
    axes.emplace_back("window", fmt::format("{},{}", side(p.mask.left), side(p.mask.right)));
  }
  axes.emplace_back("distribution", to_string(p.distribution));
  std::string options;
  for (const auto& [key, value] : p.options) {
    if (key != "sram") options += fmt::format("{}{}={}", options.empty() ? "" : ",", key, value);
  }
  if (!options.empty()) axes.emplace_back("option", options);
  return axes;
}

std::vector<std::string> repro_words(std::string_view kernel, const Problem& p,
                                     std::string_view device) {
  std::vector<std::string> words{"rooflash", "run"};
  const auto flag = [&](const std::string& name, const std::string& value) {
    words.push_back("--" + name);
    words.push_back(value);
  };
  for (const auto& [name, value] : case_axes(kernel, p)) {
    if (name == "pass") {
      words.push_back("--" + value);
    } else {
      flag(name, value);
    }
  }
  const auto sram = p.options.find("sram");
  if (sram != p.options.end()) flag("sram", sram->second);
  flag("device", std::string(device));
  return words;
}

std::string repro_command(std::string_view kernel, const Problem& p, std::string_view device) {
  return shell_command(repro_words(kernel, p, device));
}

}  // namespace rooflash
