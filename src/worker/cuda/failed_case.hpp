// What becomes of a row whose case ends in an exception.
#pragma once

#include <cstdint>

#include "core/record.hpp"
#include "worker/cuda/buffer_pool.hpp"

namespace rooflash {

// Scratch of the reference, beside what a case itself needs.
inline constexpr std::int64_t kVerifyMarginBytes = std::int64_t{256} << 20;

// Inside a catch block: ends the row by the exception in flight. Gives back `pool` where memory ran
// out. Returns whether the CUDA context is lost. `sm`: of the device.
bool end_failed(Row& row, int sm, BufferPool& pool);

}  // namespace rooflash
