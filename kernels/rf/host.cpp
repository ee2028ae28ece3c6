// rf forward on the CPU: fa3's pipeline with the lazily referenced softmax.
#include "common/hopper/host_forward.hpp"
#include "config.hpp"
#include "host_softmax.hpp"
#include "variants.hpp"

namespace rooflash::rf {
namespace {

// Of a score: scaling, sum, half a conversion.
constexpr double kFp32OpsLazy = 2.5;
constexpr double kFp32OpsExact = 3;  // half a maximum more

std::string limits(const Problem& p) {
  return hopper::limits("rf", p, choose(p).config);
}

Tile choose_tile(const Problem& p, std::int64_t sram_bytes) {
  return hopper::choose_tile(p, choose(p).config, sram_bytes);
}

std::int64_t workspace_bytes(const Problem& p) {
  return hopper::workspace_bytes(p, choose(p).config);
}

void host(const Problem& p, const HostTensors& t, Tile tile, TwoLevelMemory& memory) {
  const hopper::Config& config = choose(p).config;
  if (is_lazy(config)) {
    hopper::forward(p, t, tile, config, LazySoftmax(p.dtype), memory);
  } else {
    hopper::forward(p, t, tile, config, hopper::Softmax(), memory);
  }
}

Traffic traffic(const Problem& p, Tile tile) {
  const hopper::Config& config = choose(p).config;
  return hopper::traffic(p, tile, config, is_lazy(config) ? kFp32OpsLazy : kFp32OpsExact);
}

std::string choice(const Problem& p) {
  return hopper::describe(p, choose(p));
}

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "rf",
    .summary = "fa3 with a lazily referenced softmax: maxima in the first and masked blocks alone",
    .source = "rooflash's own step beyond FlashAttention-3",
    .variants = kVariants,
    .limits = limits,
    .workspace_bytes = workspace_bytes,
    .tile = choose_tile,
    .host = host,
    .traffic = traffic,
    .choice = choice,
    .symbols = "rooflash::rf::,rooflash::hopper::",  // the latter with split keys
};

}  // namespace rooflash::rf
