// The list of kernel families. Order here is the order in `rooflash list` and in reports.
#pragma once

#include <span>
#include <string_view>

#include "kernel.hpp"

namespace rooflash {

std::span<const Kernel* const> kernels();

// By name, or nullptr.
const Kernel* find_kernel(std::string_view name);

// The prepare function of `variant` (an element of `kernel.variants`), or nullptr where this binary
// holds no CUDA code.
PrepareFn find_prepare(const Kernel& kernel, const Variant& variant);

}  // namespace rooflash
