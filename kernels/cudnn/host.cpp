// What the vendor offers, as a family of the ladder. Its kernels are closed: there is no algorithm
// to run on the CPU and no closed form, so simulated devices have none of it.
#include "library.hpp"
#include "variants.hpp"

namespace rooflash::cudnn {

extern const Kernel kKernel;
const Kernel kKernel = {
    .name = "cudnn",
    .summary = "NVIDIA's cuDNN: its fused attention forward, the yardstick",
    .source = "cuDNN's graph API, SDPA node of cudnn-frontend",
    .variants = kVariants,
    .provider = "cudnn",
    .symbols = "cudnn",
    .library = library_in_use,
};

}  // namespace rooflash::cudnn
