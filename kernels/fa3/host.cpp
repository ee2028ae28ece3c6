// FlashAttention-3 forward on the CPU: the Hopper pipeline with the softmax of the true running
// maximum, which moves, with O rescaled, only where a score has outgrown it by more than 2^8.
#include "common/hopper/host_forward.hpp"
#include "config.hpp"
#include "variants.hpp"

namespace rooflash::fa3 {
namespace {

// Of a score: scaling, half a maximum, sum, half a conversion. Rescaling is rare.
constexpr double kFp32Ops = 3;

std::string limits(const Problem& p) {
  return hopper::limits("fa3", p, choose(p).config);
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  return hopper::choose_tile(p, choose(p).config, sram_bytes);
}

std::int64_t workspace_bytes(const Problem& p) {
  return hopper::workspace_bytes(p, choose(p).config);
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  hopper::forward(p, t, tile, choose(p).config, hopper::Softmax(), memory);
}

Traffic traffic(const Problem& p, Tile tile) {
  return hopper::traffic(p, tile, choose(p).config, kFp32Ops);
}

std::string choice(const Problem& p) {
  return hopper::describe(p, choose(p));
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "fa3",
    .summary =
        "FlashAttention-3: asynchronous copies and wgmma beside the softmax, persistent tiles",
    .source = "arXiv 2407.08608, section 3",
    .variants = kVariants,
    .limits = limits,
    .workspace_bytes = workspace_bytes,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
    .choice = choice,
    .symbols = "rooflash::fa3::,rooflash::hopper::",  // the latter with split keys
};

}  // namespace rooflash::fa3
