// Device memory kept between cases: allocating gigabytes takes longer than many a case.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gpu/check.hpp"

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

}  // namespace rooflash
