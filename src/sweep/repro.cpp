#include "sweep/repro.hpp"

#include <fmt/format.h>

#include "core/shell.hpp"

namespace rooflash {
namespace {

std::string side(std::int64_t bound) {
  return bound == kUnbounded ? "inf" : fmt::format("{}", bound);
}

}  // namespace

std::string repro_command(std::string_view kernel, const Problem& p, std::string_view device) {
  std::string command = fmt::format(
      "rooflash run --kernel {} --{} --dtype {} --batch-size {} --nheads {} --nheads-kv {} "
      "--seqlen {} --seqlen-q {} --headdim {} --headdim-v {} --causal {} --align {}",
      shell_word(kernel), to_string(p.pass), to_string(p.dtype), p.batch, p.heads_q, p.heads_kv,
      p.seqlen_kv, p.seqlen_q, p.headdim, p.headdim_v, p.mask.kind == MaskKind::causal,
      to_string(p.mask.align));
  if (p.mask.kind == MaskKind::window) {
    command += fmt::format(" --window {},{}", side(p.mask.left), side(p.mask.right));
  }
  command += fmt::format(" --distribution {}", to_string(p.distribution));
  for (const auto& [key, value] : p.options) {
    if (key == "sram") {
      command += " --sram " + value;
      continue;
    }
    command += fmt::format(" --option {}", shell_word(fmt::format("{}={}", key, value)));
  }
  return command + " --device " + shell_word(device);
}

}  // namespace rooflash
