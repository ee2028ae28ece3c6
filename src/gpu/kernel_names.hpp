// Which kernels a launch really ran, whoever wrote them.
#pragma once

#include <cuda_runtime.h>

#include <string>
#include <vector>

#include "kernel.hpp"

namespace rooflash {

struct LaunchedKernels {
  std::vector<std::string>
      names;            // in order, demangled; memory sets and copies as "memset", "memcpy"
  std::string missing;  // why there are none; "" when fine
};

// Captures one `launch` into a graph, which is not run, and reads its nodes.
LaunchedKernels launched_kernels(const Launch& launch, cudaStream_t stream);

}  // namespace rooflash
