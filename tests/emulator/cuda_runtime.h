// In place of CUDA's header of this name, which declares threadIdx and the like its own way.
#pragma once
#include <cuda_runtime_api.h>
