#include "worker/cuda/failed_case.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "gpu/check.hpp"
#include "worker/cuda/cuda_row.hpp"

namespace rooflash {
namespace {

bool context_is_lost() {
  return cudaDeviceSynchronize() != cudaSuccess;
}

// Less was left than the estimate said: fragmentation, or memory a family takes by itself.
void end_out_of_memory(Row& row, const CudaError& error, BufferPool& pool) {
  pool.release();
  std::size_t free = 0;
  std::size_t total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    row.memory.free_bytes = static_cast<std::int64_t>(free);
  }
  row.memory.needed_bytes = row.memory.peak_bytes.value_or(0) + kVerifyMarginBytes;
  end_row(row, Status::oom, error.what());
}

}  // namespace

bool end_failed(Row& row, int sm, BufferPool& pool) {
  const std::string not_built = fmt::format("not built for sm_{}", sm);
  try {
    throw;
  } catch (const NotBuiltError&) {
    end_row(row, Status::unsupported, not_built);
    return false;
  } catch (const UnsupportedError& error) {
    // A library says so of a lost context too.
    const bool lost = context_is_lost();
    end_row(row, lost ? Status::failed : Status::unsupported, error.what());
    return lost;
  } catch (const CudaError& error) {
    if (error.status() == cudaErrorMemoryAllocation) {
      end_out_of_memory(row, error, pool);
    } else if (error.status() == cudaErrorNoKernelImageForDevice) {
      end_row(row, Status::unsupported, not_built);
    } else {
      end_row(row, Status::failed, error.what());
    }
    return error.sticky();
  } catch (const std::exception& error) {
    // A family's own check throws a plain Error; the context may be lost all the same.
    (void)cudaGetLastError();
    const bool lost = context_is_lost();
    end_row(row, Status::failed, error.what());
    return lost;
  }
}

}  // namespace rooflash
