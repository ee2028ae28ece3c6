// In place of cudnn.cpp where cudnn-frontend or cuDNN's headers were not found.
#include "core/error.hpp"
#include "library.hpp"
#include "variants.hpp"

namespace rooflash::cudnn {
namespace {

Prepared prepare(const Problem&, const Tensors&, const DeviceLimits&) {
  throw UnsupportedError(chosen_library().missing);
}

constexpr PrepareFn kPrepareTable[] = {prepare, prepare, prepare};
static_assert(std::size(kPrepareTable) == std::size(kVariants));

}  // namespace

extern const std::span<const PrepareFn> kPrepare;
const std::span<const PrepareFn> kPrepare = kPrepareTable;

}  // namespace rooflash::cudnn
