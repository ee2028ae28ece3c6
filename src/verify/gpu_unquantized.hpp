// The fp64 reference on the inputs of an e4m3 problem before they were quantised.
#pragma once

#include <cstdint>
#include <vector>

#include "core/problem.hpp"
#include "gpu/check.hpp"

struct CUstream_st;

namespace rooflash {

struct CheckedRow {
  std::int64_t batch, head, row;
  std::int64_t begin, end;  // visible keys
};

template <class T>
std::vector<T> download(const DeviceBuffer& buffer) {
  std::vector<T> host(buffer.bytes() / sizeof(T));
  ROOFLASH_CUDA(cudaMemcpy(host.data(), buffer.get(), buffer.bytes(), cudaMemcpyDeviceToHost));
  return host;
}

// O of the rows, headdim_v values each; 0 where a row sees no key. The inputs are made anew, value
// by value. Synchronises the stream.
std::vector<double> unquantized_outputs(const Problem& problem, std::uint64_t seed,
                                        const std::vector<CheckedRow>& rows, CUstream_st* stream);

}  // namespace rooflash
