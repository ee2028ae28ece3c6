#include "sweep/repro.hpp"

#include <fmt/format.h>

#include "core/shell.hpp"

namespace rooflash {
namespace {

std::string side(std::int64_t bound) {
  return bound == kUnbounded ? "inf" : fmt::format("{}", bound);
}

}  // namespace

std::vector<std::string> repro_words(std::string_view kernel, const Problem& p,
                                     std::string_view device) {
  std::vector<std::string> words{"rooflash", "run"};
  const auto flag = [&](const char* name, const auto& value) {
    words.emplace_back(name);
    words.push_back(fmt::format("{}", value));
  };
  flag("--kernel", kernel);
  words.push_back(fmt::format("--{}", to_string(p.pass)));
  flag("--dtype", to_string(p.dtype));
  flag("--batch-size", p.batch);
  flag("--nheads", p.heads_q);
  flag("--nheads-kv", p.heads_kv);
  flag("--seqlen", p.seqlen_kv);
  flag("--seqlen-q", p.seqlen_q);
  flag("--headdim", p.headdim);
  flag("--headdim-v", p.headdim_v);
  flag("--causal", p.mask.kind == MaskKind::causal);
  flag("--align", to_string(p.mask.align));
  if (p.mask.kind == MaskKind::window) {
    flag("--window", side(p.mask.left) + "," + side(p.mask.right));
  }
  flag("--distribution", to_string(p.distribution));
  for (const auto& [key, value] : p.options) {
    if (key == "sram") {
      flag("--sram", value);
    } else {
      flag("--option", key + "=" + value);
    }
  }
  flag("--device", device);
  return words;
}

std::string repro_command(std::string_view kernel, const Problem& p, std::string_view device) {
  return shell_command(repro_words(kernel, p, device));
}

}  // namespace rooflash
