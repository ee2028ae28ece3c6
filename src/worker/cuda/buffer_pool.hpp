// Device memory kept between cases: allocating gigabytes takes longer than many a case.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/fp8.hpp"
#include "gpu/check.hpp"
#include "kernel.hpp"

namespace rooflash {

class BufferPool {
 public:
  // At least `bytes` bytes, for as long as no other call names `slot`. Null for 0 bytes.
  void* get(const std::string& slot, std::int64_t bytes) {
    DeviceBuffer& buffer = slots_[slot];
    if (bytes == 0) return nullptr;
    if (static_cast<std::int64_t>(buffer.bytes()) < bytes) {
      { const DeviceBuffer old = std::move(buffer); }  // freed before the larger one is asked for
      buffer = DeviceBuffer(static_cast<std::size_t>(bytes));
    }
    return buffer.get();
  }
  void release() { slots_.clear(); }

 private:
  std::map<std::string, DeviceBuffer> slots_;
};

// The tensors of a case, not filled.
inline Tensors allocate(BufferPool& pool, const Problem& problem, std::int64_t workspace_bytes) {
  const std::int64_t in = size_bytes(problem.dtype);
  const std::int64_t out = size_bytes(output_dtype(problem));
  Tensors tensors;
  tensors.q = pool.get("q", q_elements(problem) * in);
  tensors.k = pool.get("k", k_elements(problem) * in);
  tensors.v = pool.get("v", v_elements(problem) * in);
  tensors.o = pool.get("o", o_elements(problem) * out);
  tensors.lse = static_cast<float*>(
      pool.get("lse", lse_elements(problem) * static_cast<std::int64_t>(sizeof(float))));
  tensors.workspace = pool.get("workspace", workspace_bytes);
  tensors.scales = place_scales(
      problem, static_cast<const float*>(pool.get("scales", scale_elements(problem) * 4)));
  return tensors;
}

}  // namespace rooflash
