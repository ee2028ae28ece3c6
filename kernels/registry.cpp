// The explicit list. To add a family: a folder kernels/<name>/ and one line here.
#include "registry.hpp"

// clang-format off
#define ROOFLASH_FAMILIES(X) \
  X(naive)                   \
  X(sdpa)                    \
  X(fa1)                     \
  X(fa2)                     \
  X(fa3)                     \
  X(rf)                      \
  X(fp8)                     \
  X(cudnn)                   \
  X(test_wrong)              \
  X(test_nan)                \
  X(test_noop)               \
  X(test_crash)              \
  X(test_hang)               \
  X(test_illegal)            \
  X(test_slow)
// clang-format on

namespace rooflash {

// Each family defines `kKernel` in host.cpp and, in its .cu, `kPrepare`: one entry per variant.
#define ROOFLASH_DECLARE(family)                    \
  namespace family {                                \
  extern const Kernel kKernel;                      \
  extern const std::span<const PrepareFn> kPrepare; \
  }
ROOFLASH_FAMILIES(ROOFLASH_DECLARE)

namespace {

#define ROOFLASH_KERNEL(family) &family::kKernel,
const Kernel* const kKernels[] = {ROOFLASH_FAMILIES(ROOFLASH_KERNEL)};

}  // namespace

std::span<const Kernel* const> kernels() {
  return kKernels;
}

const Kernel* find_kernel(std::string_view name) {
  for (const Kernel* kernel : kKernels) {
    if (kernel->name == name) return kernel;
  }
  return nullptr;
}

PrepareFn find_prepare(const Kernel& kernel, const Variant& variant) {
#ifdef ROOFLASH_WITH_CUDA
  const auto index = static_cast<std::size_t>(&variant - kernel.variants.data());
#define ROOFLASH_PREPARE(family) \
  if (&kernel == &family::kKernel) return family::kPrepare[index];
  ROOFLASH_FAMILIES(ROOFLASH_PREPARE)
#endif
  (void)kernel;
  (void)variant;
  return nullptr;
}

}  // namespace rooflash
