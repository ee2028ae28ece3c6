// What the vendor offers, as a family of the ladder. Its kernels are closed: there is no algorithm
// to run on the CPU and no closed form, so simulated devices have none of it.
#include "core/fp8.hpp"
#include "library.hpp"
#include "variants.hpp"

namespace rooflash::cudnn {
namespace {

// Of e4m3 problems cuDNN knows one kind: a scale a tensor, O in e4m3, sums as the tensor cores give
// them.
std::string limits(const Problem& p) {
  if (p.dtype != DType::e4m3) return {};
  const Fp8Modes modes = fp8_modes(p);
  std::string wanted;
  if (modes.scale != ScaleSpan::tensor) wanted += " --fp8-scale tensor";
  if (modes.exact_accumulation) wanted += " --fp8-accum fast";
  if (modes.output != DType::e4m3) wanted += " --fp8-out e4m3";
  return wanted.empty() ? "" : "of e4m3 problems cudnn takes those with" + wanted;
}

constexpr std::string_view kOptions[] = {"scale", "hadamard", "accum", "out"};

}  // namespace

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "cudnn",
    .summary = "NVIDIA's cuDNN: its fused attention forward, the yardstick",
    .source = "cuDNN's graph API, SDPA node of cudnn-frontend",
    .variants = kVariants,
    .options = kOptions,
    .limits = limits,
    .provider = "cudnn",
    .symbols = "cudnn",
    .library = library_in_use,
};

}  // namespace rooflash::cudnn
